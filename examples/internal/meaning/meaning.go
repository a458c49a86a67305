// Package meaning says what a Foo means, on any framework: pure functions from Foo to Deployment,
// and from Deployment to status. The repository's controller has them in the deployment.go of its
// package main, which other packages cannot import. So the deployment.go of this package is a copy
// in which some names begin with a capital letter. A test checks that nothing else differs.
package meaning
