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
	"syscall"
)

const usage = `usage: go run ./hack/fork --module PATH --group GROUP --kind KIND [FLAGS] DIR

writes a new repository to DIR, a folder that does not exist yet.

  --module PATH     the Go module, for example github.com/acme/widgets
  --group GROUP     the API group, under a domain of yours: widgets.acme.dev
  --kind KIND       the resource: Widget
  --version VERSION the version of the API (default: v1alpha1)
  --plural PLURAL   the plural of the resource, in lower case, if it is irregular: people
  --name NAME       the name of the controller, its image and its namespace (default:
                    KIND-controller, in lower case)
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
	n, resource, dir, err := parseFlags(args, progress)
	if err != nil {
		return err
	}
	if n, err = checkNames(n, resource); err != nil {
		return err
	}
	from, err := openRepository(ctx, folder)
	if err != nil {
		return err
	}
	target, err := checkDir(dir, from.root)
	if err != nil {
		return err
	}
	f, err := newFork(from, n)
	if err != nil {
		return err
	}
	f.progress = progress
	f.command = append([]string{"go", "run", "./hack/fork"}, args...)
	_, plural := n.lower()
	fmt.Fprintf(progress, "fork: %s becomes %s (%s.%s/%s, short name %s), its controller %s\n",
		from.names.kind, n.kind, plural, n.group, n.version, n.short, n.name)
	if err := f.create(ctx, target); err != nil {
		return err
	}
	fmt.Fprintf(progress, "fork: done. Go on with %s/NEXT.md\n", dir)
	return nil
}

// parseFlags returns the values of the flags. The plural of the resource may be empty.
func parseFlags(args []string, out io.Writer) (n names, resource, dir string, err error) {
	flags := flag.NewFlagSet("fork", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&n.module, "module", "", "")
	flags.StringVar(&n.group, "group", "", "")
	flags.StringVar(&n.version, "version", "v1alpha1", "")
	flags.StringVar(&n.kind, "kind", "", "")
	flags.StringVar(&resource, "plural", "", "")
	flags.StringVar(&n.name, "name", "", "")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		return n, "", "", err
	case err != nil:
		return n, "", "", fmt.Errorf("%w; go run ./hack/fork --help lists the flags", err)
	case flags.NArg() == 0:
		return n, "", "", errors.New("the folder to write is missing; write it last, like ../widgets")
	case flags.NArg() > 1:
		return n, "", "", fmt.Errorf("one folder to write is enough, got %q; write it last, after "+
			"all flags", flags.Args())
	}
	return n, resource, flags.Arg(0), nil
}
