package faults

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// generations returns the generation of each Deployment by its name and UID. The generation changes
// with the spec and with the annotations.
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
func (c *lagCase) checkLagging() {
	c.t.Helper()
	if c.way == streams && (c.works() || len(c.requested(isWrite)) > 0) {
		c.t.Errorf("the next controller works with a state that is old; its writes: %v",
			c.requested(isWrite))
	}
	c.checkDeletions()
}

// checkDeletions checks that the next controller deleted no Deployment that the newest state asks
// for, or that must stay.
func (c *lagCase) checkDeletions() {
	c.t.Helper()
	for _, r := range c.requested(isDeletion) {
		if name := r.ObjectRef.Name; name == c.users.names["a"] || name == c.keeps {
			total.count(lost)
			c.t.Errorf("the next controller deleted Deployment %s", name)
		}
	}
}

// checkInTheEnd checks what the next controller did on the whole.
func (c *lagCase) checkInTheEnd() {
	c.t.Helper()
	c.checkDeletions()
	for _, r := range c.requested(isCreation) {
		total.count("Deployments created too late")
		if !c.mayCreate(r.ObjectRef.Name) {
			total.count(needless)
			c.t.Errorf("the next controller created Deployment %s", r.ObjectRef.Name)
		}
	}
	for key, generation := range c.generations() {
		if c.before[key] != 0 && c.before[key] != generation {
			total.count("Deployments changed too late")
		}
	}
	select {
	case <-c.second.Exited:
		total.count(unexplained)
		c.t.Errorf("the next controller ended by itself: %s", c.second.LastLine())
	default:
	}
}

// mayCreate reports whether the next controller may create that Deployment. If nobody asks for it
// any more, that is so only if the Foo that it sees has no status. Otherwise, it asks whether the
// Foo has changed.
func (c *lagCase) mayCreate(name string) bool {
	return name == c.users.names["a"] || c.shown == nil || c.shown.Status.ObservedGeneration == 0
}
