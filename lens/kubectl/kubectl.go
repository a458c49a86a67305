// Package kubectl does what kubectl does, for the commands of the lens's buttons, where there is
// neither kubectl nor a shell.
package kubectl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
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

	files     []string
	wait, all bool
}

// Run runs a line, in which kubectl gets input on its standard input. Output and error are those of
// kubectl.
func (s *Shell) Run(ctx context.Context, line, input string) (output string, err error) {
	if before, after, found := strings.Cut(line, " | "); found {
		line = after
		if input, err = s.edit(before); err != nil {
			return "", err
		}
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
		"create": c.create, "apply": c.create, "patch": c.change, "delete": c.delete,
		"rollout": c.rollout, "label": c.label,
	}
	do := verbs[c.args[0]]
	if do == nil {
		return "", fmt.Errorf("kubectl %s is not possible here", c.args[0])
	}
	return do(ctx)
}

// parse reads the flags and the arguments.
func (c *command) parse(words []string) error {
	set := pflag.NewFlagSet("kubectl", pflag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVarP(&c.namespace, "namespace", "n", "", "")
	set.StringArrayVarP(&c.files, "filename", "f", nil, "")
	set.StringVarP(&c.patch, "patch", "p", "", "")
	set.StringVar(&c.patchType, "type", "strategic", "")
	set.StringVar(&c.cascade, "cascade", "background", "")
	set.StringVar(&c.image, "image", "", "")
	set.StringVar(&c.hard, "hard", "", "")
	set.Bool("server-side", false, "") // each apply is
	set.BoolVar(&c.wait, "wait", true, "")
	set.BoolVar(&c.all, "all", false, "")
	if err := set.Parse(words); err != nil {
		return err
	}
	c.args = append(set.Args(), "", "") // those that are missing
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
	parts := strings.Split(words[1], "/") // s/OLD/NEW/
	return strings.ReplaceAll(string(file), parts[1], parts[2]), err
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
