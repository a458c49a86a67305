package main

import "strconv"

// A contender is what is measured: a controller, or a reference that only writes.
type contender struct {
	id    string // in the results
	title string // in tables and plots
	// command runs a controller, from the root of the repository. A reference has none. An address
	// to serve metrics on replaces metricsAddress.
	command []string
	// writes is what a reference writes for each Foo, in this order.
	writes []write
	// watched says that a reference watches what it writes, as every controller must.
	watched bool
	// defaults says that workers and throttling are the framework's defaults. Such a contender is
	// measured once in each mode except apart.
	defaults bool
	// maxFoos limits a throttled contender, because more Foos would take too long. 0 is no limit.
	maxFoos int
}

// workers is how many workers a contender has, unless it has the defaults of its framework.
const workers = 16

const metricsAddress = "METRICS-ADDRESS"

const (
	plainCreates   = "creates"
	watchedCreates = "watched"
	sameWrites     = "writes"
	this           = "this"
)

// frameworks are the contenders that this controller is compared with.
var frameworks = []string{"controller-runtime", "lasso"}

var contenders = []contender{
	{
		id: plainCreates, title: "plain Creates",
		writes: []write{createDeployment},
	},
	{
		id: watchedCreates, title: "plain Creates, watched",
		writes: []write{createDeployment}, watched: true,
	},
	{
		id: sameWrites, title: "the same writes, watched",
		writes: []write{createDeployment, createEvent, updateStatus}, watched: true,
	},
	{
		id: this, title: "this controller",
		command: []string{".local/bin/sample-controller", "--workers", strconv.Itoa(workers),
			"--metrics-bind-address=" + metricsAddress, "--health-probe-bind-address=0"},
	},
	{
		id: "controller-runtime", title: "controller-runtime",
		command: []string{".local/bin/foo-controller-runtime", "--workers", strconv.Itoa(workers),
			"--metrics-bind-address=" + metricsAddress, "--health-probe-bind-address=0"},
	},
	{
		id: "lasso", title: "Lasso",
		command: []string{".local/bin/foo-lasso", "--workers", strconv.Itoa(workers)},
	},
	{
		id: "controller-runtime-defaults", title: "controller-runtime, its defaults", defaults: true,
		command: []string{".local/bin/foo-controller-runtime", "--workers", "1",
			"--metrics-bind-address=" + metricsAddress, "--health-probe-bind-address=0"},
	},
	{
		id: "lasso-defaults", title: "Lasso, its defaults", defaults: true, maxFoos: 50,
		command: []string{".local/bin/foo-lasso", "--workers", "5", "--kube-api-qps", "0"},
	},
}

// isReference reports whether c is a reference, and not a controller.
func (c contender) isReference() bool { return c.command == nil }

// find returns the contender of that id, and nil if there is none.
func find(id string) *contender {
	for i := range contenders {
		if contenders[i].id == id {
			return &contenders[i]
		}
	}
	return nil
}
