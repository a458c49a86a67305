package main

import (
	"flag"
	"fmt"
	"io"
	"time"

	"example.com/sample-controller/internal/process"
)

// options holds what the command line sets.
type options struct {
	process.Options // that of every controller
	resync          time.Duration
}

// parseFlags returns the options in args. With --help, it prints the flags to usage and returns
// flag.ErrHelp.
func parseFlags(args []string, usage io.Writer) (*options, error) {
	o := &options{}
	fs := o.FlagSet(controllerName, "Foos")
	o.addFlags(fs)
	return o, o.Parse(fs, args, usage, "keeps a Deployment running for every Foo", o.validate)
}

func (o *options) addFlags(fs *flag.FlagSet) {
	fs.DurationVar(&o.resync, "resync", 0, "How often to sync every Foo even if nothing changed; "+
		"0 means never. A resync reads the cache, not the API server.")
}

// validate refuses wrong values that can be parsed.
func (o *options) validate() error {
	if o.resync < 0 {
		return fmt.Errorf("--resync must not be negative, but is %v", o.resync)
	}
	return nil
}
