// Command home gives this project its address, from which others can import it:
//
//	go -C hack run ./home github.com/acme/sample-controller
//
// It changes the paths of all modules and the names of the images, and nothing else. Look at the
// difference, commit it, and tag it: v0.1.0 is a version of the product, and explore/v0.1.0 one of
// the library explore.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"

	"example.com/sample-controller/hack/prologue"
)

var (
	address = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+(/[a-z0-9]+([._-][a-z0-9]+)*)+$`)
	// old is the address, but not that of a registry of somebody else, or a part of a longer name.
	old = regexp.MustCompile(`(^|[^\w./-])example\.com/sample-controller\b`)
	// image begins what names an image.
	image = regexp.MustCompile(`((?:IMAGE := |image: |image=|\{2:-"|newName: |- name: )"?)` +
		`example\.com/sample-controller\b`)
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, "..", os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "home:", err)
		os.Exit(1)
	}
}

// run changes the repository in root.
func run(ctx context.Context, root string, args []string) error {
	if len(args) != 1 || !address.MatchString(args[0]) {
		return errors.New("write the address, a domain and a path in lower case: " +
			"go -C hack run ./home github.com/acme/sample-controller")
	}
	git := func(args ...string) (string, error) {
		output, err := prologue.Command(ctx, root, "git", args...).Output()
		return string(output), err
	}
	if changed, err := git("status", "--porcelain"); err != nil || changed != "" {
		return errors.Join(err, errors.New("commit what is changed first, so that you can look at the "+
			"difference that this makes"))
	}
	files, err := git("grep", "-lzIE", `example\.com/sample-controller`)
	if err != nil {
		return errors.New("this repository has another address already")
	}
	imageName := args[0]
	if path, is := strings.CutPrefix(args[0], "github.com/"); is {
		imageName = "ghcr.io/" + path // the registry that belongs to it
	}
	for file := range strings.SplitSeq(strings.TrimSuffix(files, "\x00"), "\x00") {
		path := filepath.Join(root, file)
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text = image.ReplaceAll(text, []byte("${1}"+imageName))
		text = old.ReplaceAll(text, []byte("${1}"+args[0]))
		if err := os.WriteFile(path, text, 0o644); err != nil { // it keeps the mode of the file
			return err
		}
	}
	if err := prologue.Command(ctx, root, "gofmt", "-w", ".").Run(); err != nil { // imports are sorted
		return fmt.Errorf("gofmt: %w", err)
	}
	fmt.Println("Look at it with: git diff. Then commit it.")
	return nil
}
