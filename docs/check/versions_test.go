package check

import (
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// versions has the program of chapter 13, which is the root's with another version of the API.
const versions = root + "/docs/tutorial/13-versions"

// everywhere is what makes the root's program one of v1beta1.
var everywhere = strings.NewReplacer(
	`sample-controller/pkg/`, `sample-controller/docs/tutorial/13-versions/pkg/`,
	"v1alpha1", "v1beta1", "V1alpha1", "V1beta1", ".Spec.DeploymentName", ".Spec.Deployment.Name",
	"artifacts/examples/crd.yaml", "docs/tutorial/13-versions/artifacts/3-stored",
	"kubectl apply -f", "kubectl apply -k",
)

// edits are what the webhook and a second version need: for each file, what is replaced after that,
// and by what.
var edits = map[string][][2]string{
	"controller.go": nil, "writes.go": nil, "metrics.go": nil, "syncerrors.go": nil,
	"deployment.go": {
		{"	metav1.SetMetaDataLabel(&deployment.ObjectMeta, managedByLabel", `	setOwnerVersion(deployment, foo)
	metav1.SetMetaDataLabel(&deployment.ObjectMeta, managedByLabel`},
	},
	"clients.go": {
		{"	\"k8s.io/client-go/kubernetes\"\n", `	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
`},
		{"	reviews kubernetes.Interface\n", `	reviews kubernetes.Interface
	// dynamic is for the caBundle in the CustomResourceDefinition.
	dynamic dynamic.Interface
`},
		{"	config.QPS, config.Burst = ", `	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("creating the client for the CustomResourceDefinition: %w", err)
	}
	config.QPS, config.Burst = `},
	},
	"flags.go": {
		{"	leaderElect      bool\n", `	webhookAddress   string
	webhookHosts     string
	leaderElect      bool
`},
		{"	fs.BoolVar(&o.version,", `	fs.StringVar(&o.webhookAddress, webhookFlag, "127.0.0.1:9443",
		"` + "`Address`" + ` to serve the conversion webhook on; 0 is none.")
	fs.StringVar(&o.webhookHosts, "webhook-hosts", "127.0.0.1",
		"` + "`Names`" + ` by which API servers call the webhook, with commas between them: "+
		"SERVICE.NAMESPACE.svc in a cluster.")
	fs.BoolVar(&o.version,`},
	},
	"main.go": {
		{"	\"example.com/sample-controller/internal/recorder\"\n",
			`	"example.com/sample-controller/internal/recorder"
	"example.com/sample-controller/internal/webhook"
`},
		{"	recorder     *recorder.Recorder\n", `	recorder     *recorder.Recorder
	webhook      *webhook.Server
`},
		{"		recorder:     recorder,\n", "		recorder:     recorder,\n		webhook:      newWebhook(clients, o),\n"},
		{"p.elector.Check, p.informers.Check)", "p.elector.Check, p.webhook.Check)"},
		{"	if err := p.clients.preflight(", `	// The webhook comes first, because the lists of the informers need it.
	if err := p.webhook.Start(background); err != nil {
		return err
	}
	defer func() { stop(); <-p.webhook.Done() }()
	if err := p.clients.awaitVersion(workCtx); err != nil {
		return nil // asked to stop
	}
	if err := p.clients.preflight(`},
	},
}

// TestVersionsFollowTheRoot fails if a file is not the root's with these changes. With -update, it
// writes the file.
func TestVersionsFollowTheRoot(t *testing.T) {
	for file, replacements := range edits {
		source, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		text := everywhere.Replace(string(source))
		for _, r := range replacements {
			if n := strings.Count(text, r[0]); n != 1 {
				t.Fatalf("%s: found %q %d times, want once", file, r[0], n)
			}
			text = strings.Replace(text, r[0], r[1], 1)
		}
		want, err := format.Source([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if *update {
			if err := os.WriteFile(filepath.Join(versions, file), want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, _ := os.ReadFile(filepath.Join(versions, file)); string(got) != string(want) {
			t.Errorf("%s of %s differs from the root's; make docs corrects it", file, versions)
		}
	}
}

// TestOldVersionIsTheRoots: v1alpha1 of chapter 13 is the API of the root.
func TestOldVersionIsTheRoots(t *testing.T) {
	for _, file := range []string{"doc.go", "types.go"} {
		file = "pkg/apis/samplecontroller/v1alpha1/" + file
		want, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(filepath.Join(versions, file)); string(got) != string(want) {
			t.Errorf("%s of %s differs from the root's", file, versions)
		}
	}
}
