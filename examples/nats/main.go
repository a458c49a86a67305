// Command nats keeps a Deployment running for every Foo, like the program in the repository's root.
// But its Foos are in a key-value bucket of NATS JetStream: see docs/frameworks.md.
//
// Read it in this order: bucket.go, which shows a bucket to an informer; owner.go, what leads from a
// Deployment to its Foo without an owner reference; controller.go, what a sync does; run.go, the loop,
// as in the root; main.go, the program and its users.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"example.com/sample-controller/internal/process"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const controllerName = "nats-sample-controller"

type options struct {
	process.Options
	resync        time.Duration // how often to read the buckets again
	url, folder   string
	deleteMissing bool
}

func main() {
	args, do := os.Args[1:], run
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		args, do = nil, use
	}
	o, err := parseFlags(args, os.Stdout)
	process.Main(&o.Options, err, func(ctx context.Context) error { return do(ctx, o) })
}

func parseFlags(args []string, usage io.Writer) (*options, error) {
	o := &options{}
	fs := o.FlagSet(controllerName, "Foos")
	fs.DurationVar(&o.resync, "resync", 10*time.Minute,
		"How often to read the buckets again, and to look at all Foos and Deployments.")
	fs.StringVar(&o.url, "nats-url", "",
		"`URL` of the NATS server. (default: $NATS_URL or "+nats.DefaultURL+")")
	fs.StringVar(&o.folder, "serve", "",
		"Run a NATS server at --nats-url, and keep its data in this `folder`.")
	fs.BoolVar(&o.deleteMissing, "delete-missing", false, "Delete the Deployments of Foos that are "+
		"missing, even without a delete marker.")
	err := o.Parse(fs, args, usage, "keeps a Deployment running for every Foo in a NATS bucket",
		o.validate)
	o.url = cmp.Or(o.url, os.Getenv("NATS_URL"), nats.DefaultURL)
	return o, err
}

// validate refuses wrong values that can be parsed.
func (o *options) validate() error {
	if o.resync <= 0 {
		return errors.New("--resync must be positive")
	}
	return nil
}

// run runs the controller until ctx is done, or until it cannot go on, which is an error.
func run(ctx context.Context, o *options) error {
	if o.folder != "" {
		stop, err := serve(o.url, o.folder)
		if err != nil {
			return err
		}
		defer stop()
	}
	config, err := o.Load()
	if err != nil {
		return err
	}
	c, err := connect(o, nats.RetryOnFailedConnect(true))
	if err != nil {
		return err
	}
	defer c.conn.Close()
	controller, err := NewController(ctx, config, o, c)
	if err != nil {
		return err
	}
	syncErrors.Register()
	return controller.Run(ctx)
}

// serve runs a NATS server.
func serve(url, folder string) (stop func(), err error) {
	port, err := strconv.Atoi(url[strings.LastIndex(url, ":")+1:])
	if err != nil {
		return nil, errors.New("--nats-url has no port at its end")
	}
	server, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: port,
		JetStream: true, StoreDir: folder, NoSigs: true})
	if err != nil {
		return nil, fmt.Errorf("preparing the NATS server: %w", err)
	}
	server.Start()
	if !server.ReadyForConnections(listTimeout) {
		err = fmt.Errorf("no NATS server can start at port %d with its data in %s: "+
			"choose another --nats-url or --serve", port, folder)
	}
	return func() { server.Shutdown(); server.WaitForShutdown() }, err
}

// connection is a connection to a NATS server. It is made again when it breaks.
type connection struct {
	jetstream.JetStream
	conn  *nats.Conn
	makes bool // buckets that are not there
}

// connect connects to a NATS server. Without a connection, a write fails at once: it must not wait
// for one, and happen when nobody wants it any more. A login that is refused is tried again: the
// password may be about to change, and a leader without a connection would keep its Lease.
func connect(o *options, more ...nats.Option) (*connection, error) {
	conn, err := nats.Connect(o.url, append(more, nats.Name(controllerName),
		nats.IgnoreAuthErrorAbort(), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1),
		nats.ReconnectWait(200*time.Millisecond))...)
	if _, ok := errors.AsType[*url.Error](err); ok {
		err = errors.New("this is no URL") // err contains the password, or a part of it
	}
	if err != nil {
		at := o.url[strings.LastIndex(o.url, "@")+1:] // without a password or token
		return nil, fmt.Errorf("connecting to NATS at %s: %w", at, err)
	}
	js, err := jetstream.New(conn)
	return &connection{js, conn, o.folder != ""}, err
}

// Bucket opens a bucket. Only with --serve, it makes one that is not there.
func (c *connection) Bucket(ctx context.Context, name string) (bucket, error) {
	if c.makes {
		return c.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: name})
	}
	return c.KeyValue(ctx, name)
}

// Check is a readiness check. It fails while NATS is away.
func (c *connection) Check(*http.Request) error {
	_, err := c.conn.RTT()
	return err
}

// use does what a user says on the command line. The key of a Foo is NAMESPACE.NAME.
func use(ctx context.Context, o *options) error {
	c, err := connect(o)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	foos, fooErr := c.KeyValue(ctx, fooBucket)
	defaults, defaultErr := c.KeyValue(ctx, defaultBucket)
	if err := errors.Join(fooErr, defaultErr); err != nil {
		return err
	}
	switch args := os.Args[1:]; {
	case len(args) == 3 && args[0] == "put":
		return put(ctx, foos, args[1], args[2])
	case len(args) == 3 && args[0] == "default":
		return put(ctx, defaults, args[1]+"."+defaultName, args[2])
	case len(args) == 2 && args[0] == "delete":
		_, err := foos.Get(ctx, "spec."+args[1]) // a marker for what never was would stay for ever
		if err == nil {
			err = foos.Delete(ctx, "spec."+args[1])
		}
		return err
	case len(args) == 1 && args[0] == "get":
		return get(ctx, &source{bucket: foos, keys: "*.*.>", resync: listTimeout})
	}
	return errors.New("usage: put KEY SPEC | delete KEY | get | default NAMESPACE SPEC")
}

// put makes the Foo of key, or changes those fields of its spec that are in the JSON of spec. The bucket
// refuses that if somebody else has changed the Foo since it was read.
func put(ctx context.Context, b jetstream.KeyValue, key, spec string) error {
	namespace, name, _ := strings.Cut(key, ".")
	refused := append(validation.IsDNS1123Label(namespace), validation.IsDNS1123Subdomain(name)...)
	if len(refused) > 0 {
		return fmt.Errorf("%q is not NAMESPACE.NAME: %s", key, strings.Join(refused, "; "))
	}
	key = "spec." + key
	var foo struct {
		Spec v1alpha1.FooSpec `json:"spec"`
	}
	write := func(value []byte) (uint64, error) { return b.Create(ctx, key, value) }
	old, err := b.Get(ctx, key)
	if err == nil {
		write = func(value []byte) (uint64, error) { return b.Update(ctx, key, value, old.Revision()) }
		err = json.Unmarshal(old.Value(), &foo)
	}
	if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
		return err
	}
	fields := json.NewDecoder(strings.NewReader(spec))
	fields.DisallowUnknownFields()
	err = fields.Decode(&foo.Spec)
	if err == nil && fields.Decode(new(any)) != io.EOF {
		err = errors.New("something follows the JSON object")
	}
	if err != nil {
		return fmt.Errorf("reading the spec: %w", err)
	}
	value, _ := json.Marshal(foo) // no error: it is plain data
	_, err = write(value)
	return err
}

// get prints all Foos.
func get(ctx context.Context, s *source) error {
	list, err := s.list(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, foo := range list.(*v1alpha1.FooList).Items {
		if ready := meta.FindStatusCondition(foo.Status.Conditions, "Ready"); !isGone(&foo) {
			fmt.Printf("%s.%s: Deployment %s, %d available, %s\n", foo.Namespace, foo.Name,
				foo.Spec.DeploymentName, foo.Status.AvailableReplicas,
				cmp.Or(ready, &metav1.Condition{Reason: "not synced"}).Reason)
		}
	}
	return nil
}
