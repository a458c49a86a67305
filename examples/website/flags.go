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
	registry        string
	resync          time.Duration
}

// parseFlags returns the options in args. With --help, it prints the flags to usage and returns
// flag.ErrHelp.
func parseFlags(args []string, usage io.Writer) (*options, error) {
	o := &options{}
	fs := o.FlagSet(controllerName, "Websites")
	o.addFlags(fs)
	return o, o.Parse(fs, args, usage, "serves a page for every Website", o.validate)
}

func (o *options) addFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.registry, "registry", "http://127.0.0.1:8090", "`URL` of the registry.")
	fs.DurationVar(&o.resync, "resync", 10*time.Minute, "How often to register every Website again, "+
		"even if nothing changed: the registry may have lost it.")
}

// validate refuses wrong values that can be parsed.
func (o *options) validate() error {
	if o.resync <= 0 {
		return fmt.Errorf("--resync must be positive, not %v", o.resync)
	}
	return nil
}
