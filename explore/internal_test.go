package explore

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"example.com/sample-controller/explore/apiserver"
)

// TestPictures shows what makes no difference between two ends: the order of what has a merge key,
// and a generated name. But the name of a Pod of a StatefulSet says which it is.
func TestPictures(t *testing.T) {
	picture := func(name string, finalizers []any, conditions ...string) picture {
		server, err := apiserver.New()
		if err != nil {
			t.Fatal(err)
		}
		w := &World{server: server}
		if w.users, err = dynamic.NewForConfig(server.Config(nil)); err != nil {
			t.Fatal(err)
		}
		var list []any
		for _, c := range conditions {
			list = append(list, map[string]any{"type": c, "status": "True"})
		}
		pod := &object{Object: map[string]any{"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"name": name, "namespace": "default", "generateName": "a-",
				"finalizers": finalizers},
			"spec":   map[string]any{"containers": []any{map[string]any{"name": "c", "image": "c"}}},
			"status": map[string]any{"conditions": list}}}
		if _, err := w.client(pod).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		_, err = w.client(pod).UpdateStatus(t.Context(), pod,
			metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return w.picture()
	}
	x, y := "example.com/x", "example.com/y"
	one := picture("a-bcdfg", []any{x, y}, "Ready", "Sound")
	if d := picture("a-hjklm", []any{y, x}, "Sound", "Ready").differences(one); len(d) > 0 {
		t.Error("another order, another suffix:", d)
	}
	if d := fmt.Sprint(picture("a-bcdfg", []any{x}, "Ready").differences(one)); !strings.Contains(d,
		"metadata.finalizers[example.com/y]") || !strings.Contains(d, "status.conditions[Sound].status") {
		t.Error("without one finalizer and one condition:", d)
	}
	if d := picture("a-1", nil).differences(picture("a-0", nil)); len(d) != 2 {
		t.Error("a-1 in place of a-0:", d)
	}
}

// TestEndsThatAgree shows what is said when the undisturbed run seems to be the wrong one.
func TestEndsThatAgree(t *testing.T) {
	e := &ends{}
	for _, differs := range []string{"there is no x", "there is no x", "", "there is no x", "another"} {
		e.count(differs)
	}
	if got := e.agreement("scale"); !strings.Contains(got, "Of the 5 disturbed runs of the scenario "+
		"scale, 3 end alike") || !strings.HasSuffix(got, ": there is no x") {
		t.Error("3 of 5:", got)
	}
	if e.count(""); e.agreement("scale") != "" {
		t.Error("3 of 6:", e.agreement("scale"))
	}
}

// shelf is held while time passes.
type shelf struct{ sync.Mutex }

func (s *shelf) fill() {
	s.Lock()
	defer s.Unlock()
	time.Sleep(time.Minute)
}

func (s *shelf) take() {
	s.Lock()
	defer s.Unlock()
}

// TestStandstill shows how a case ends that waits for a mutex which is held during a sleep.
func TestStandstill(t *testing.T) {
	if os.Getenv("STAND_STILL") != "" {
		patience = 1
		bubble(t, func(*testing.T) {
			s := &shelf{}
			go s.fill()
			time.Sleep(time.Second)
			s.take()
		})
		return
	}
	alone := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStandstill$")
	alone.Env = append(os.Environ(), "STAND_STILL=yes")
	output, err := alone.CombinedOutput()
	said, holder, found := strings.Cut(string(output), "The mutex seems to be held here")
	if err == nil || !found || !strings.Contains(said, "TestStandstill has stood still for 1 s") ||
		!strings.Contains(said, "(*shelf).take") || !strings.Contains(holder, "(*shelf).fill") {
		t.Errorf("%v, and it said:\n%s", err, output)
	}
}
