// Package kubectl does what kubectl does, for the commands of the lens's buttons, where there is
// neither kubectl nor a shell.
package kubectl

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Shell runs commands.
type Shell struct {
	Client dynamic.Interface
	// Files are those that commands may read.
	Files fs.FS
	// LookupKind returns the resource of a kind.
	LookupKind func(schema.GroupVersionKind) (r schema.GroupVersionResource, namespaced, ok bool)
}

// command is one kubectl, with what its flags say.
type command struct {
	*Shell
	input string
	args  []string

	namespace, patch, patchType, cascade, image, hard string

	files      files
	replicas   int64
	serverSide bool
	wait       bool
}

// files are the values of -f.
type files []string

func (f *files) String() string     { return strings.Join(*f, ",") }
func (f *files) Set(s string) error { *f = append(*f, s); return nil }

// Run runs a line, in which kubectl gets input on its standard input. Output and error are those of
// kubectl.
func (s *Shell) Run(ctx context.Context, line, input string) (output string, err error) {
	if before, after, found := strings.Cut(line, " | "); found {
		line = after
		if input, err = s.edit(before); err != nil {
			return "", err
		}
	}
	if line, err = s.replaceNames(ctx, line); err != nil {
		return "", err
	}
	c := &command{Shell: s, input: input}
	words := split(line)
	if len(words) == 0 || words[0] != "kubectl" {
		return "", fmt.Errorf("%q is not possible here", line)
	}
	if err := c.parse(words[1:]); err != nil {
		return "", err
	}
	verbs := map[string]func(context.Context) (string, error){
		"create": c.create, "apply": c.create, "scale": c.scale, "patch": c.change,
		"delete": c.delete, "rollout": c.rollout, "label": c.label,
	}
	do := verbs[c.args[0]]
	if do == nil {
		return "", fmt.Errorf("kubectl %s is not possible here", c.args[0])
	}
	return do(ctx)
}

// parse reads the flags, which may stand between the arguments.
func (c *command) parse(words []string) error {
	set := flag.NewFlagSet("kubectl", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&c.namespace, "n", "", "")
	set.Var(&c.files, "f", "")
	set.StringVar(&c.patch, "p", "", "")
	set.StringVar(&c.patchType, "type", "strategic", "")
	set.StringVar(&c.cascade, "cascade", "background", "")
	set.StringVar(&c.image, "image", "", "")
	set.StringVar(&c.hard, "hard", "", "")
	set.Int64Var(&c.replicas, "replicas", 0, "")
	set.BoolVar(&c.serverSide, "server-side", false, "")
	set.BoolVar(&c.wait, "wait", true, "")
	for len(words) > 0 {
		if err := set.Parse(words); err != nil {
			return err
		}
		if words = set.Args(); len(words) > 0 {
			c.args, words = append(c.args, words[0]), words[1:]
		}
	}
	if len(c.args) == 0 {
		return errors.New("kubectl needs a verb, such as create")
	}
	c.args = append(c.args, "", "") // those that are missing
	return nil
}

var word = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`)

// split returns the words of a line, without the quotes around or in them.
func split(line string) (words []string) {
	for _, found := range word.FindAllString(line, -1) {
		if i := strings.IndexAny(found, `'"`); i >= 0 {
			found = strings.ReplaceAll(found, found[i:i+1], "")
		}
		words = append(words, found)
	}
	return words
}

var getNames = regexp.MustCompile(`\$\(kubectl -n (\S+) get foos -o name\)`)

// replaceNames puts the names of all Foos where a line asks for them.
func (s *Shell) replaceNames(ctx context.Context, line string) (string, error) {
	found := getNames.FindStringSubmatch(line)
	if found == nil {
		return line, nil
	}
	r, _, _ := s.LookupKind(kinds["foo"])
	list, err := s.Client.Resource(r).Namespace(found[1]).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	names := ""
	for _, item := range list.Items {
		names += " foo/" + item.GetName()
	}
	return strings.Replace(line, found[0], names, 1), nil
}

var loop = regexp.MustCompile(`^for i in \$\(seq (\d+)\); do (.*); echo ---; done$`)

// edit returns the output of a sed, or of a loop of them.
func (s *Shell) edit(line string) (text string, err error) {
	if found := loop.FindStringSubmatch(line); found != nil {
		count, _ := strconv.Atoi(found[1])
		one, err := s.edit(found[2])
		all := strings.Builder{}
		for i := range count {
			all.WriteString(strings.ReplaceAll(one, "$i", strconv.Itoa(i+1)) + "---\n")
		}
		return all.String(), err
	}
	words := split(line)
	if len(words) != 3 || words[0] != "sed" {
		return "", fmt.Errorf("%q is not possible here", line)
	}
	file, err := fs.ReadFile(s.Files, words[2])
	parts := strings.Split(words[1], "/")
	if parts[0] == "s" && len(parts) == 4 {
		return strings.ReplaceAll(string(file), parts[1], parts[2]), err
	}
	for line := range strings.Lines(string(file)) { // /TEXT/d
		if !strings.Contains(line, parts[1]) {
			text += line
		}
	}
	return text, err
}

// explain returns an error as kubectl prints it. doing is what failed, or "".
func explain(doing string, err error) error {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return err
	}
	s := status.Status()
	if s.Reason == metav1.StatusReasonInvalid && s.Details != nil {
		causes := ""
		for _, cause := range s.Details.Causes {
			causes += "\n* " + cmp.Or(cause.Field, "<nil>") + ": " + cause.Message
		}
		if len(s.Details.Causes) == 1 {
			causes = strings.TrimPrefix(causes, "\n* ")
		}
		//nolint:staticcheck // kubectl begins so
		return fmt.Errorf("The %s %q is invalid: %s", s.Details.Kind, s.Details.Name, causes)
	}
	if doing != "" {
		doing = "error when " + doing + ": "
	}
	//nolint:staticcheck // kubectl begins so
	return fmt.Errorf("Error from server (%s): %s%s", s.Reason, doing, s.Message)
}
