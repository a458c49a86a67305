package main

import "slices"

// workers is how many workers a contender has.
const workers = "16"

// this is the ID of this repository's controllers.
const this = "this"

// A contender is a controller, or two, that is measured. The programs are in .local/bin.
type contender struct {
	id         string // in the results
	title      string // in tables
	forFoos    string
	forWebsite string // "" if it has none
	noMetrics  bool
}

var contenders = []contender{
	{id: this, title: "this controller", forFoos: "sample-controller", forWebsite: "website"},
	{id: "controller-runtime", title: "controller-runtime", forFoos: "foo-controller-runtime",
		forWebsite: "website-controller-runtime"},
	{id: "lasso", title: "Lasso", forFoos: "foo-lasso", noMetrics: true},
}

// contenders returns the contenders that have a controller of what is measured.
func (o options) contenders() []contender {
	return slices.DeleteFunc(slices.Clone(contenders), func(c contender) bool {
		return o.websites && c.forWebsite == ""
	})
}

// object returns the name of what the contenders work for.
func (o options) object() string {
	if o.websites {
		return "Website"
	}
	return "Foo"
}

// program returns the path of the controller, from the root of the repository.
func (c contender) program(websites bool) string {
	if websites {
		return ".local/bin/" + c.forWebsite
	}
	return ".local/bin/" + c.forFoos
}
