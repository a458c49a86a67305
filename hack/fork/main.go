// Command fork writes a new repository in which this one's controller has the names of your
// resource. docs/forking.md says what it contains.
//
//	go run ./hack/fork --module github.com/acme/x --group x.acme.dev --kind Widget ../x
//
// It reads the old names from the repository, leaves out the files that are about this project, and
// renames everything in the others. Whatever it does not understand is an error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

const usage = `usage: go run ./hack/fork --module PATH --group GROUP --kind KIND [FLAGS] DIR

writes a new repository to DIR, a folder that does not exist yet. Take --from website if your
resource owns objects of several kinds, or something outside Kubernetes; otherwise the default.

  --module PATH     the Go module, for example github.com/acme/widgets
  --group GROUP     the API group, under a domain of yours: widgets.acme.dev
  --kind KIND       the resource: Widget
  --from website    fork examples/website: three children, a finalizer, and a registry outside
  --version VERSION the version of the API (default: v1alpha1)
  --plural PLURAL   the plural of the resource, in lower case, if it is irregular: people
  --short NAME      its short name for kubectl (default: the initials or the beginning of the kind)
  --with PARTS      what it has besides, or all: some of
                    %s
  --name NAME       the name of the controller, its image and its namespace (default:
                    KIND-controller, in lower case)
  --article ARTICLE a or an, if the pages say the wrong one before the kind
`

func main() {
	// An interrupted run, too, removes what it has begun to write.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, ".", os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fork:", err)
		stop()
		os.Exit(1)
	}
}

// run forks the repository that contains the folder.
func run(ctx context.Context, folder string, args []string, progress io.Writer) error {
	n, o, err := parseFlags(args, progress)
	if err != nil {
		return err
	}
	if n, err = checkNames(n, o.resource); err != nil {
		return err
	}
	from, err := openRepository(ctx, folder)
	if err != nil {
		return err
	}
	if from, err = from.template(o.from); err != nil {
		return err
	}
	out, err := omit(from, o.with)
	if err != nil {
		return err
	}
	n = from.newNames(n)
	target, err := checkDir(o.dir, from.root)
	if err != nil {
		return err
	}
	if n.kind == from.names.kind {
		return fmt.Errorf("--kind %s: that is the example of this repository; write the name of your "+
			"resource, like Widget", n.kind)
	}
	f, err := newFork(from, n, out)
	if err != nil {
		return err
	}
	f.progress = progress
	f.command = append([]string{"go", "run", "./hack/fork"}, args...)
	_, plural := n.lower()
	fmt.Fprintf(progress, "fork: %s becomes %s (%s.%s/%s, short name %s), its controller %s\n",
		from.names.kind, n.kind, plural, n.group, n.version, n.short, n.name)
	if irregular.MatchString(n.kind) && o.resource == "" {
		fmt.Fprintf(progress, "fork: if %s is not the plural, write --plural\n", plural)
	}
	if n.protected() {
		fmt.Fprintf(progress, "fork: %s is a group of the Kubernetes project, which approves each API in "+
			"it: https://github.com/kubernetes/enhancements/pull/1111. If that is not your project, stop, "+
			"and choose a domain of yours\n", n.group)
	}
	if err := f.create(ctx, target); err != nil {
		return err
	}
	own, library := f.size()
	fmt.Fprintf(progress, "fork: %d files with %d lines are your own; explore and internal/testing "+
		"have %d files with %d lines, which you need not read; the rest is generated\n",
		own.files, own.lines, library.files, library.lines)
	fmt.Fprintf(progress, "fork: done. Go on with %s/NEXT.md\n", o.dir)
	return nil
}

// options are what is said besides the names.
type options struct {
	resource string   // the plural of the resource, may be empty
	with     []string // parts
	from     string   // the template
	dir      string
}

// parseFlags returns the values of the flags.
func parseFlags(args []string, out io.Writer) (n names, o options, err error) {
	flags := flag.NewFlagSet("fork", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&n.module, "module", "", "")
	flags.StringVar(&n.group, "group", "", "")
	flags.StringVar(&n.version, "version", "v1alpha1", "")
	flags.StringVar(&n.kind, "kind", "", "")
	flags.StringVar(&o.resource, "plural", "", "")
	flags.StringVar(&n.short, "short", "", "")
	flags.StringVar(&n.name, "name", "", "")
	flags.StringVar(&n.article, "article", "", "")
	flags.StringVar(&o.from, "from", "", "")
	flags.Func("with", "", func(value string) error {
		o.with = append(o.with, strings.Split(value, ",")...)
		return nil
	})
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(out, usage, strings.Join(partNames(), ",\n                    "))
		return n, o, err
	case err != nil:
		return n, o, fmt.Errorf("%w; go run ./hack/fork --help lists the flags", err)
	case flags.NArg() == 0:
		return n, o, errors.New("the folder to write is missing; write it last, like ../widgets")
	case flags.NArg() > 1:
		return n, o, fmt.Errorf("one folder to write is enough, got %q; write it last, after "+
			"all flags", flags.Args())
	}
	o.dir = flags.Arg(0)
	return n, o, nil
}
