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
	// websites says that it is a controller of Websites, not of Foos.
	websites bool
}

// workers is how many workers a contender has, unless it has the defaults of its framework.
const workers = 16

// What is replaced in the command of a controller.
const (
	metricsAddress = "METRICS-ADDRESS"
	registryURL    = "REGISTRY-URL"
)

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

// websiteContenders are controllers of Websites. The results of Websites are in a file of their own,
// in which these have the IDs of the controllers of Foos.
var websiteContenders = []contender{
	{id: this, command: websiteCommand(".local/bin/website"), websites: true},
	{
		id: "controller-runtime", command: websiteCommand(".local/bin/website-controller-runtime"),
		websites: true,
	},
}

func websiteCommand(program string) []string {
	return []string{program, "--workers", strconv.Itoa(workers), "--registry=" + registryURL,
		"--metrics-bind-address=" + metricsAddress, "--health-probe-bind-address=0"}
}

// object returns the name of what c works for.
func (c contender) object() string {
	if c.websites {
		return "Website"
	}
	return "Foo"
}

// isReference reports whether c is a reference, and not a controller.
func (c contender) isReference() bool { return c.command == nil }

// find returns the contender of that id, and nil if there is none.
func find(id string) *contender { return findIn(contenders, id) }

func findIn(contenders []contender, id string) *contender {
	for i := range contenders {
		if contenders[i].id == id {
			return &contenders[i]
		}
	}
	return nil
}
