package faults

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// generations returns the generation of each Deployment by its name and UID. The generation changes
// with the spec.
func (c *lagCase) generations() map[string]int64 {
	c.t.Helper()
	list, err := c.deployments.List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	generations := map[string]int64{}
	for _, d := range list.Items {
		generations[d.Name+"/"+string(d.UID)] = d.Generation
	}
	return generations
}

// checkLagging checks what the next controller did while the API server lagged.
func (c *lagCase) checkLagging(before map[string]int64) {
	c.t.Helper()
	if c.way == streams && (c.works() || len(c.requested(isWrite)) > 0) {
		c.t.Errorf("the next controller works with a state that is old; its writes: %v",
			c.requested(isWrite))
	}
	after := c.generations()
	for key, generation := range before {
		name, _, _ := strings.Cut(key, "/")
		now, there := after[key]
		if there && now != generation {
			total.count("Deployments changed too late")
		}
		if !there && c.mustStay(name) {
			total.count(lost)
			c.t.Errorf("Deployment %s is gone", name)
		}
	}
	c.checkDeletions()
	for _, r := range c.requested(isCreation) {
		total.count("Deployments created too late")
		if !c.mayCreate(r.ObjectRef.Name) {
			total.count(needless)
			c.t.Errorf("the next controller created Deployment %s", r.ObjectRef.Name)
		}
	}
}

// mayCreate reports whether the next controller may create a Deployment that nobody asks for any
// more: one that the old Foo asks for. It asks before that whether this Foo has gone, but only if
// somebody has reported a status.
func (c *lagCase) mayCreate(deployment string) bool {
	exists := c.users.names["a"] != ""
	return c.shown != nil && c.shown.Spec.DeploymentName == deployment &&
		(exists || c.shown.Status.ObservedGeneration == 0)
}

// mustStay reports whether the newest state asks for a Deployment of that name.
func (c *lagCase) mustStay(deployment string) bool {
	return c.users.names["a"] == deployment || c.keeps == deployment
}

// checkDeletions checks that the next controller deleted no Deployment that must stay.
func (c *lagCase) checkDeletions() {
	c.t.Helper()
	for _, r := range c.requested(isDeletion) {
		if c.mustStay(r.ObjectRef.Name) {
			total.count(lost)
			c.t.Errorf("the next controller deleted Deployment %s", r.ObjectRef.Name)
		}
	}
}

// checkInTheEnd checks what the next controller did on the whole.
func (c *lagCase) checkInTheEnd() {
	c.t.Helper()
	if err := c.check(); err != nil {
		c.t.Error(err)
	}
	c.checkDeletions()
	select {
	case <-c.second.Exited:
		total.count(unexplained)
		c.t.Errorf("the next controller ended by itself: %s", c.second.LastLine())
	default:
	}
}
