package main

import _ "example.com/sample-controller/lens/film" // for the flag -explore.film
