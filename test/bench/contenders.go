package main

// workers is how many workers a contender has.
const workers = "16"

// this is the ID of this repository's controller.
const this = "this"

// A contender is a controller that is measured.
type contender struct {
	id        string // in the results
	title     string // in tables
	program   string // in .local/bin
	noMetrics bool
}

var contenders = []contender{
	{id: this, title: "this controller", program: "sample-controller"},
	{id: "controller-runtime", title: "controller-runtime", program: "foo-controller-runtime"},
	{id: "lasso", title: "Lasso", program: "foo-lasso", noMetrics: true},
}
