package scenarios

import _ "example.com/sample-controller/lens/film" // for -explore.film
