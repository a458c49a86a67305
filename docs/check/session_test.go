package check

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/process"
)

// session executes pages in a copy of the repository, which they may change, and on a control plane
// of its own, the copy's "dev". Each page finds what the last page left behind, as a reader would.
type session struct {
	folder    string
	env       []string
	terminals map[string]*terminal
}

// build builds the control plane, and what the pages need of other modules: client-go takes minutes,
// and the patience is only for what comes after. Without -trimpath, Go would compile each package of
// this repository anew in each copy.
func build(t *testing.T) {
	t.Helper()
	for _, variable := range []string{"GOFLAGS", "HACK_GOFLAGS"} {
		t.Setenv(variable, strings.TrimSpace(os.Getenv(variable)+" -trimpath"))
	}
	new(session).do(t, root, `hack/cluster build || exit
		others='{{with .Module}}{{if not (or .Main .Replace)}}{{$.ImportPath}}{{end}}{{end}}'
		for module in . docs test examples; do
			go -C $module list -deps -test -f "$others" ./... | xargs go -C $module list -export || exit
		done`)
}

// newSession makes the copy, in a folder of .local. It has the built tools of the original, except the
// controller, which a page may build from changed files.
func newSession(t *testing.T, folder string) *session {
	t.Helper()
	original := must.Get(filepath.Abs(root))(t)
	s := &session{folder: filepath.Join(original, ".local", folder)}
	local := filepath.Join(s.folder, ".local")
	// No variable leads to a cluster or a repository of the user, or makes tests long.
	s.env = slices.DeleteFunc(os.Environ(), regexp.MustCompile(
		`^(KUBE|MAKE|HACK_TESTS=|GIT_(DIR|WORK_TREE|INDEX_FILE)=)`).MatchString)
	s.env = append(s.env, "LC_ALL=C", "TERM=dumb", "KUBECACHEDIR="+local+"/cache",
		"KUBECONFIG="+local+"/nowhere.yaml", "KUBERC="+local+"/kuberc.yaml")
	s.do(t, original, `copy=.local/`+folder+` &&
		{ [ ! -x $copy/hack/cluster ] || $copy/hack/cluster down dev; } && rm -rf $copy && mkdir -p $copy &&
		git ls-files -z --cached --others --exclude-standard |
		xargs -0 tar -cf - | tar -xf - -C $copy`)
	s.do(t, s.folder, `mkdir -p .local/bin && ln -s "$PWD"/../bin/* .local/bin/ &&
		rm -f .local/bin/sample-controller && git init -q && git add -A &&
		git -c user.name=docs -c user.email=docs@example.com commit -qm "The pages as they are"`)
	for name, text := range map[string]string{
		"nowhere.yaml": nowhere, "kuberc.yaml": fmt.Sprintf(kuberc, *patience),
	} {
		must.Do(t, os.WriteFile(filepath.Join(local, name), []byte(text), 0o644))
	}
	t.Cleanup(must.Get(process.Prepare(s.folder, "hack/cluster", "down", "dev"))(t))
	return s
}

const (
	// nowhere is the kubeconfig of a page until it chooses a cluster. Without it, kubectl would take
	// the user's kubeconfig.
	nowhere = `{apiVersion: v1, kind: Config, current-context: nowhere,
  contexts: [{name: nowhere, context: {cluster: nowhere}}],
  clusters: [{name: nowhere, cluster: {server: "https://nowhere.invalid"}}]}
`
	// kuberc gives "kubectl wait" the patience of the session in place of 30s.
	kuberc = `apiVersion: kubectl.config.k8s.io/v1beta1
kind: Preference
defaults: [{command: wait, options: [{name: timeout, default: "%v"}]}]
`
)

// do executes a command that is not on a page.
func (s *session) do(t *testing.T, folder, command string) {
	t.Helper()
	shell := exec.Command("bash", "-c", command)
	shell.Dir, shell.Env = folder, s.env
	if output, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, output)
	}
}

// begin brings back the files, as the last page told the reader to do. (A git that end has killed
// leaves its lock.) It leaves the control plane as it is: each page begins by starting an empty one.
func (s *session) begin(t *testing.T) {
	t.Helper()
	s.terminals = map[string]*terminal{}
	s.do(t, s.folder, `rm -f .git/index.lock && git reset -q --hard && git clean -qfd`)
}

func (s *session) end() {
	for _, terminal := range s.terminals {
		terminal.close()
	}
}
