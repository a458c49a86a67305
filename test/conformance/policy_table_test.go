package conformance

// refusal is a strategic merge patch of a Deployment that the policy refuses, and the message.
type refusal struct{ patch, message string }

func inMetadata(patch, field string) refusal {
	return refusal{`{"metadata":{` + patch + `}}`, notSo + "metadata" + field}
}

func inSpec(patch, field string) refusal {
	return refusal{`{"spec":{` + patch + `}}`, notSo + "spec" + field}
}

func inTemplate(patch, field string) refusal {
	return inSpec(`"template":{"metadata":{`+patch+`}}`, ".template.metadata"+field)
}

func inPod(patch, field string) refusal {
	return inSpec(`"template":{"spec":{`+patch+`}}`, ".template.spec"+field)
}

func inWeb(patch, field string) refusal {
	row := inPod(`"containers":[{"name":"web",`+patch+`}]`, "")
	row.message = notSo + "container web" + field
	return row
}

// owner replaces the owner of a Deployment by what a Foo would be, with one field changed.
func owner(field string) string {
	return `"ownerReferences":[{"$patch":"replace"},{"uid":"u","name":"web","kind":"Foo",
		"apiVersion":"samplecontroller.k8s.io/v1alpha1",
		"controller":true,"blockOwnerDeletion":true,` + field + `}]`
}

const (
	ofFoos = "the controller writes and deletes only Deployments of Foos"
	atMost = "at most 100 replicas"
	notSo  = "the controller does not write this, or not so: "
)

// notOfAFoo is refused in a new Deployment. Before the policy, validation refuses some updates.
var notOfAFoo = []refusal{
	{`{"metadata":{"ownerReferences":null}}`, ofFoos},
	{`{"metadata":{` + owner(`"blockOwnerDeletion":false,"kind":"Bar"`) + `}}`, ofFoos},
	{`{"metadata":{` + owner(`"blockOwnerDeletion":false,
		"apiVersion":"samplecontroller.k8s.io.example.com/v1"`) + `}}`, ofFoos},
	{`{"metadata":{` + owner(`"controller":false`) + `}}`, ofFoos},
	inMetadata(owner(`"blockOwnerDeletion":false`), ": ownerReferences"),
	inMetadata(`"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}]`,
		": ownerReferences"),
	inMetadata(`"generateName":"fresh-"`, ": generateName"),
	{`{"spec":{"selector":{"matchLabels":{"app":"bank"}},
		"template":{"metadata":{"labels":{"app":"bank"}}}}}`,
		notSo + "spec: selector, spec.template.metadata.labels: app"},
}

// notRemoved is what others have added to a Deployment.
var notRemoved = []refusal{
	inMetadata(`"annotations":{"team":null}`, ": annotations"),
	inMetadata(`"labels":{"team":null}`, ".labels: team"),
	inMetadata(owner(`"kind":"Foo"`), ": ownerReferences"),
	inSpec(`"minReadySeconds":null`, ": minReadySeconds"),
	inTemplate(`"annotations":null`, ": annotations"),
	inTemplate(`"labels":{"team":null}`, ".labels: team"),
	inPod(`"nodeSelector":null`, ": nodeSelector"),
	inPod(`"serviceAccountName":null,"serviceAccount":null`, ": serviceAccount"),
	inPod(`"containers":[{"name":"s0","$patch":"delete"}]`, ": containers"),
	inPod(`"containers":[{"name":"s0","image":"example.com/miner"}]`, ": containers"),
	inPod(`"containers":[{"name":"s0","securityContext":{"privileged":true}}]`, ": containers"),
	{`{"spec":{"template":{"spec":{"containers":[{"name":"web","$patch":"delete"}]}}}}`,
		notSo + "container web: "},
	inWeb(`"command":null`, ": command"),
	inWeb(`"resources":{"limits":null}`, ": resources: limits"),
}

// notWritten is what the controller never writes.
var notWritten = []refusal{
	inMetadata(`"annotations":{"a":"b"}`, ": annotations"),
	inMetadata(`"finalizers":["example.com/stay"]`, ": finalizers"),
	inMetadata(`"labels":{"app":"bank"}`, ".labels: app"),
	inMetadata(`"labels":{"app.kubernetes.io/managed-by":"me"}`,
		".labels: app.kubernetes.io/managed-by"),
	inMetadata(`"labels":{"app.kubernetes.io/managed-by":null}`,
		".labels: app.kubernetes.io/managed-by"),

	{`{"spec":{"replicas":500}}`, atMost},
	{`{"spec":{"replicas":101}}`, atMost},
	inSpec(`"paused":true`, ": paused"),
	inSpec(`"strategy":{"type":"Recreate","rollingUpdate":null}`, ": strategy"),
	inSpec(`"strategy":{"rollingUpdate":{"maxSurge":"100%"}}`, ": strategy"),
	inSpec(`"minReadySeconds":5`, ": minReadySeconds"),
	inSpec(`"revisionHistoryLimit":1000`, ": revisionHistoryLimit"),
	inSpec(`"progressDeadlineSeconds":5`, ": progressDeadlineSeconds"),

	inTemplate(`"labels":{"k8s-app":"kube-dns"}`, ".labels: k8s-app"),
	inTemplate(`"annotations":{"sidecar.istio.io/inject":"true"}`, ": annotations"),
	inTemplate(`"finalizers":["example.com/stay"]`, ": finalizers"),

	inPod(`"affinity":{"podAntiAffinity":{}}`, ": affinity"),
	inPod(`"automountServiceAccountToken":true`, ": automountServiceAccountToken"),
	inPod(`"containers":[{"name":"miner","image":"example.com/miner"}]`, ": containers"),
	inPod(`"dnsConfig":{"nameservers":["192.0.2.1"]}`, ": dnsConfig"),
	inPod(`"dnsPolicy":"Default"`, ": dnsPolicy"),
	inPod(`"enableServiceLinks":false`, ": enableServiceLinks"),
	inPod(`"hostAliases":[{"ip":"192.0.2.1","hostnames":["bank"]}]`, ": hostAliases"),
	inPod(`"hostIPC":true`, ": hostIPC"),
	inPod(`"hostNetwork":true`, ": hostNetwork"),
	inPod(`"hostPID":true`, ": hostPID"),
	inPod(`"hostUsers":true`, ": hostUsers"),
	inPod(`"hostname":"bank"`, ": hostname"),
	inPod(`"imagePullSecrets":[{"name":"of-somebody"}]`, ": imagePullSecrets"),
	inPod(`"initContainers":[{"name":"miner","image":"example.com/miner"}]`, ": initContainers"),
	inPod(`"nodeName":"kwok-node-0"`, ": nodeName"),
	inPod(`"nodeSelector":{"kubernetes.io/hostname":"kwok-node-0"}`, ": nodeSelector"),
	inPod(`"os":{"name":"linux"}`, ": os"),
	inPod(`"priorityClassName":"system-node-critical"`, ": priorityClassName"),
	inPod(`"readinessGates":[{"conditionType":"example.com/ready"}]`, ": readinessGates"),
	inPod(`"runtimeClassName":"runc"`, ": runtimeClassName"),
	inPod(`"schedulerName":"other"`, ": schedulerName"),
	inPod(`"securityContext":{"runAsUser":0}`, ": securityContext"),
	inPod(`"serviceAccountName":"admin"`, ": serviceAccount"), // the API server has two such fields
	inPod(`"shareProcessNamespace":true`, ": shareProcessNamespace"),
	inPod(`"terminationGracePeriodSeconds":3600`, ": terminationGracePeriodSeconds"),
	inPod(`"tolerations":[{"operator":"Exists"}]`, ": tolerations"),
	inPod(`"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone",
		"whenUnsatisfiable":"DoNotSchedule","labelSelector":{}}]`, ": topologySpreadConstraints"),
	inPod(`"volumes":[{"name":"v","secret":{"secretName":"of-somebody"}}]`, ": volumes"),
	inPod(`"volumes":[{"name":"v","hostPath":{"path":"/"}}]`, ": volumes"),

	inWeb(`"args":["sh"]`, ": args"),
	inWeb(`"command":["sh"]`, ": command"),
	inWeb(`"env":[{"name":"LD_PRELOAD","value":"/tmp/x"}]`, ": env"),
	inWeb(`"envFrom":[{"secretRef":{"name":"of-somebody"}}]`, ": envFrom"),
	inWeb(`"image":"example.com/miner"`, ": image"),
	inWeb(`"imagePullPolicy":"Always"`, ": imagePullPolicy"),
	inWeb(`"lifecycle":{"postStart":{"exec":{"command":["sh"]}}}`, ": lifecycle"),
	inWeb(`"livenessProbe":{"exec":{"command":["sh"]}}`, ": livenessProbe"),
	inWeb(`"ports":[{"containerPort":8080,"protocol":"TCP","hostPort":53}]`, ": ports"),
	inWeb(`"ports":[{"containerPort":8081,"protocol":"TCP"}]`, ": ports"),
	inWeb(`"readinessProbe":{"httpGet":{"host":"bank","port":80}}`, ": readinessProbe"),
	inWeb(`"resizePolicy":[{"resourceName":"cpu","restartPolicy":"NotRequired"}]`,
		": resizePolicy"),
	inWeb(`"resources":{"limits":{"cpu":"2"}}`, ": resources: limits"),
	inWeb(`"resources":{"requests":{"cpu":"2"}}`, ": resources: requests"),
	inWeb(`"securityContext":null`, ": securityContext"),
	inWeb(`"securityContext":{"allowPrivilegeEscalation":null,"privileged":true}`,
		": securityContext"),
	inWeb(`"securityContext":{"capabilities":{"add":["SYS_ADMIN"]}}`, ": securityContext"),
	inWeb(`"securityContext":{"runAsNonRoot":false,"runAsUser":0}`, ": securityContext"),
	inWeb(`"securityContext":{"seccompProfile":{"type":"Unconfined"}}`, ": securityContext"),
	inWeb(`"startupProbe":{"exec":{"command":["sh"]}}`, ": startupProbe"),
	inWeb(`"stdin":true`, ": stdin"),
	inWeb(`"terminationMessagePath":"/x"`, ": terminationMessagePath"),
	inWeb(`"tty":true`, ": tty"),
	inPod(`"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"of-somebody"}}],
		"containers":[{"name":"web","volumeDevices":[{"name":"v","devicePath":"/dev/x"}]}]`,
		": volumes, container web: volumeDevices"),
	inPod(`"volumes":[{"name":"v","emptyDir":{}}],
		"containers":[{"name":"web","volumeMounts":[{"name":"v","mountPath":"/x"}]}]`,
		": volumes, container web: volumeMounts"),
	inWeb(`"workingDir":"/x"`, ": workingDir"),
}
