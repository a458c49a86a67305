package main

// What the root's metrics.go says of Foos is left out: it would need the caches of all shards.
