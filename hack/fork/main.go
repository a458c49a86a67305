// Command fork writes a new repository in which this one's controller has the names of your
// resource. docs/forking.md says what it contains.
//
//	go -C hack run ./fork --module github.com/acme/x --group x.acme.dev --kind Widget ../x
//
// It reads the old names from the repository, copies the files of the controller, and renames
// everything in them. Whatever it does not understand is an error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"syscall"
)

const usage = `usage: go -C hack run ./fork --module PATH --group GROUP --kind KIND [FLAGS] DIR

writes a new repository to DIR, a folder that does not exist yet, or is empty; if that fails, DIR is
removed. A relative path begins at the root of this repository. Take --from website if your resource
owns objects of several kinds, or something outside Kubernetes; otherwise the default.

  --module PATH     the Go module, for example github.com/acme/widgets
  --group GROUP     the API group, under a domain of yours: widgets.acme.dev
  --kind KIND       the resource: Widget
  --from website    fork examples/website: three children, a finalizer, and a registry outside
  --version VERSION the version of the API (default: v1alpha1)
  --plural PLURAL   the plural of the resource, in lower case, if it is irregular: people
  --short NAME      its short name for kubectl (default: the initials or the beginning of the kind)
  --name NAME       the name of the controller and its namespace (default:
                    KIND-controller, in lower case)
`

func main() {
	// An interrupted run, too, removes what it has begun to write.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := os.Chdir("..") // from hack to the root of the repository
	if err == nil {
		err = run(ctx, ".", os.Args[1:], os.Stdout)
	}
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
	target, err := checkDir(o.dir, from.root)
	if err != nil {
		return err
	}
	f, err := newFork(from, n, o.from != "")
	if err != nil {
		return err
	}
	f.progress = progress
	f.command = append([]string{"go", "-C", "hack", "run", "./fork"}, args...)
	_, plural := n.lower()
	fmt.Fprintf(progress, "fork: %s becomes %s (%s.%s/%s, short name %s), its controller %s\n",
		f.old[0].kind, n.kind, plural, n.group, n.version, n.short, n.name)
	if err := f.create(ctx, target); err != nil {
		return err
	}
	files, lines := f.size()
	fmt.Fprintf(progress, "fork: %d files with %d lines are your own; the rest is generated, or is %s\n"+
		"fork: done. Go on with %s/NEXT.md\n", files, lines, library, o.dir)
	return nil
}

// options are what is said besides the names. The plural of the resource and the template may be empty.
type options struct{ resource, from, dir string }

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
	flags.StringVar(&o.from, "from", "", "")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		return n, o, err
	case err != nil:
		return n, o, fmt.Errorf("%w; go -C hack run ./fork --help lists the flags", err)
	case o.from != "" && o.from != path.Base(example):
		return n, o, fmt.Errorf("--from %q: there is no such template; write --from website, or nothing "+
			"for a single child", o.from)
	case flags.NArg() != 1:
		return n, o, fmt.Errorf("write one folder, after all flags, like ../widgets; got %q", flags.Args())
	}
	o.dir = flags.Arg(0)
	return n, o, nil
}
