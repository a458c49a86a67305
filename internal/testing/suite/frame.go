package suite

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/process"
	"example.com/sample-controller/internal/testing/suite/audit"
)

// leaseDuration is the duration of the Lease in -leader-flags.
const leaseDuration = 8 * time.Second

// startLeader starts a program and waits until it works, as the leader.
func startLeader(t *testing.T, n *Namespace) *Program {
	t.Helper()
	leader := StartProgram(t, LeaderFlags, In(n))
	n.CatchUp()
	return leader
}

// startStandby starts a program and waits until it has read the Lease, which another holds, twice.
func startStandby(t *testing.T, n *Namespace) *Program {
	t.Helper()
	begin := Now(t)
	standby := StartProgram(t, LeaderFlags, In(n))
	Eventually(t, "the standby has read the Lease twice", func() (bool, string) {
		looks := standby.Requests(t, begin, func(r audit.Request) bool {
			return r.ObjectRef.Resource == "leases" && r.Verb == "get"
		})
		return len(looks) >= 2, fmt.Sprint(looks)
	})
	return standby
}

// leaseRequests returns the successful requests of p for the Lease since begin.
func (p *Program) leaseRequests(t *testing.T, begin audit.Mark) (reads, writes []audit.Request) {
	t.Helper()
	all := p.Requests(t, begin, func(r audit.Request) bool {
		return r.ObjectRef.Resource == "leases" && r.Succeeded()
	})
	for _, r := range all {
		if r.IsWrite() {
			writes = append(writes, r)
		} else {
			reads = append(reads, r)
		}
	}
	return reads, writes
}

// expectTakeover waits until standby has taken the Lease of leader, which has ended. It fails t if
// standby read the free Lease more than twice. The Lease is free when rest has passed since standby
// read the leader's last write. A standby reads it every 0.5 to 1.1 s. Counting the reads in the
// audit log gives the same result on a busy machine.
func expectTakeover(t *testing.T, begin audit.Mark, leader, standby *Program, rest time.Duration) {
	t.Helper()
	Eventually(t, "the standby has taken the Lease", func() (bool, string) {
		reads, writes := standby.leaseRequests(t, begin)
		return len(writes) > 0, fmt.Sprintf("it has read the Lease %d times", len(reads))
	})
	_, before := leader.leaseRequests(t, begin)
	reads, writes := standby.leaseRequests(t, begin)
	over := before[len(before)-1].StageTimestamp
	looks := 0
	for _, look := range reads {
		at := look.StageTimestamp
		if rest > 0 && at.After(over) {
			over, rest = at.Add(rest), 0
		} else if at.After(over) && at.Before(writes[0].StageTimestamp) {
			looks++
		}
	}
	if looks > 2 {
		t.Errorf("the standby read the free Lease %d times before it took it, want at most 2", looks)
	}
}

// StandbyTakesOverFromAStoppedLeader fails t unless a standby works at once when the leader is
// stopped, which frees the Lease, and does not write before.
func StandbyTakesOverFromAStoppedLeader(t *testing.T) {
	n := NewNamespace(t)
	begin := Now(t)
	leader := startLeader(t, n)
	standby := startStandby(t, n)
	n.CatchUp()
	writes := standby.Requests(t, begin, func(r audit.Request) bool { return n.Has(r) && r.IsWrite() })
	if len(writes) > 0 {
		t.Errorf("the standby wrote although it was not the leader: %v", writes)
	}

	must.Do(t, leader.Stop())

	expectTakeover(t, begin, leader, standby, 0)
	n.CatchUp()
	must.Do(t, standby.Stop())
}

// StandbyTakesOverFromAKilledLeader fails t unless a standby works as soon as the Lease of a leader
// that was killed has expired.
func StandbyTakesOverFromAKilledLeader(t *testing.T) {
	n := NewNamespace(t)
	begin := Now(t)
	leader := startLeader(t, n)
	standby := startStandby(t, n)

	leader.Kill()

	time.Sleep(leaseDuration) // until then, the Lease is not free
	expectTakeover(t, begin, leader, standby, leaseDuration)
	n.CatchUp()
}

// ProgramThatCannotWorkSaysWhatToDo fails t unless a controller exits with 1, and says what to do,
// if it cannot work: without an API server, the CustomResourceDefinition, or permissions.
func ProgramThatCannotWorkSaysWhatToDo(t *testing.T) {
	for name, obstacle := range map[string]struct {
		change  func(*clientcmdapi.Config)
		message []string // what the last line of the output contains
	}{
		"no API server": {Server("https://127.0.0.1:1"), []string{"127.0.0.1:1", "KUBECONFIG"}},
		"no CRD":        {Server(serverWithoutGroup(t)), []string{config.Resource, "kubectl apply -f"}},
		"no permissions": {withoutGroups, []string{
			"is forbidden", `cannot list resource "`, "at the cluster scope"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := StartProgram(t, "", obstacle.change)
			program.AwaitEnd(t)
			if code := program.ExitCode(); code != 1 {
				t.Errorf("the controller exited with %d, want 1", code)
			}
			for _, part := range obstacle.message {
				if line := program.LastLine(); !strings.Contains(line, part) {
					t.Errorf("the controller's last line is %q, want it to contain %q", line, part)
				}
			}
		})
	}
}

// AwaitEnd waits until the program has ended by itself.
func (p *Program) AwaitEnd(t *testing.T) {
	t.Helper()
	select {
	case <-p.Exited:
	case <-time.After(Patience):
		t.Fatalf("the controller still runs after %v, want it to end", Patience)
	}
}

// Server returns a function that makes the kubeconfig lead to the server at url.
func Server(url string) func(*clientcmdapi.Config) {
	return func(config *clientcmdapi.Config) {
		for _, cluster := range config.Clusters {
			*cluster = clientcmdapi.Cluster{Server: url}
		}
	}
}

// withoutGroups takes the kubeconfig's user out of system:masters. Then it may do next to nothing.
func withoutGroups(config *clientcmdapi.Config) {
	for _, user := range config.AuthInfos {
		user.ImpersonateGroups = nil
	}
}

// serverWithoutGroup starts a proxy to the API server that does not serve the custom resource, and
// returns its URL.
func serverWithoutGroup(t *testing.T) string {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(must.Get(url.Parse(Cluster.Host))(t))
	proxy.Transport = must.Get(rest.TransportFor(Cluster))(t)
	mux := http.NewServeMux()
	mux.Handle("/", proxy)
	group, _, _ := strings.Cut(config.APIVersion, "/")
	mux.Handle("/apis/"+group+"/", http.NotFoundHandler())
	without := httptest.NewServer(mux)
	t.Cleanup(without.Close)
	return without.URL
}

// MetricsReader returns a token of somebody who may get the metrics of the deployed controller.
func (n *Namespace) MetricsReader() (token string) {
	n.T.Helper()
	n.T.Cleanup(func() { Kubectl(n.T, "", "delete", "clusterrolebinding", n.Name) })
	n.Kubectl("create", "clusterrolebinding", n.Name,
		"--clusterrole="+config.Name+"-metrics-reader", "--serviceaccount="+n.Name+":prometheus")
	return n.Token("prometheus")
}

// MetricsAreForThoseWhoMayGetThem fails t unless the controller that is installed from dir serves
// its metrics only to those whom the API server allows to get them.
func MetricsAreForThoseWhoMayGetThem(t *testing.T, dir string) {
	n := NewNamespace(t)
	deployment := Deploy(t, dir, nil)
	reader := n.MetricsReader()
	address := must.Get(process.FreeAddress())(t)
	StartDeployed(t, deployment, address)
	n.CatchUp()

	for name, test := range map[string]struct {
		token string
		want  int
	}{
		"no token":                       {"", http.StatusUnauthorized},
		"an invalid token":               {"nobody", http.StatusUnauthorized},
		"a token for another audience":   {n.Token("a", "elsewhere"), http.StatusUnauthorized},
		"a token without the permission": {n.Token("b"), http.StatusForbidden},
		"a token with the permission":    {reader, http.StatusOK},
	} {
		// The API server may need a moment to know a new token or binding.
		what := fmt.Sprintf("with %s, the answer is %d", name, test.want)
		Eventually(t, what, func() (bool, string) {
			code, body := GetMetrics(t, address, test.token)
			if shown := strings.Contains(body, "workqueue_depth"); shown != (code == http.StatusOK) {
				t.Fatalf("with %s: the answer is %d, and has metrics: %v", name, code, shown)
			}
			return code == test.want, fmt.Sprint(code)
		})
	}
}
