package chart

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// cases has, for each file of deploy/helm/ci, what is particular about what it makes.
var cases = map[string]func(t *testing.T, r *release){
	"embedded.yaml":             embedded,
	"external.yaml":             external,
	"minimal.yaml":              minimal,
	"names.yaml":                names,
	"alerts.yaml":               alerts,
	"network-embedded.yaml":     networkEmbedded,
	"network-external.yaml":     networkExternal,
	"schema-job.yaml":           schemaJob,
	"schema-job-federated.yaml": schemaJobFederated,
	"archive-only.yaml":         archiveOnly,
	"stopped.yaml":              stopped,
	"slow-drain.yaml":           slowDrain,
	"many-tables.yaml":          manyTables,
	"selections.yaml":           selections,
	"environment.yaml":          limitsFromEnvironment,
	"private-image.yaml":        privateImage,
	"openshift.yaml":            openShift,
	"platform.yaml":             platform,
	"rehearsals.yaml":           rehearsals,
}

func TestEachFileOfValues(t *testing.T) {
	files, err := os.ReadDir(filepath.Join(chartDir, "ci"))
	if err != nil || len(files) != len(cases) {
		t.Fatalf("%d files in ci, %d cases: %v", len(files), len(cases), err)
	}
	for _, f := range files {
		t.Run(f.Name(), func(t *testing.T) {
			t.Parallel()
			assert := cases[f.Name()]
			if assert == nil {
				t.Fatal("no case says what this file is for")
			}
			out, err := helm(t, "lint", "--strict", chartDir, "--values", filepath.Join(chartDir, "ci", f.Name()))
			if err != nil {
				t.Errorf("lint: %v\n%s", err, out)
			}
			assert(t, rendered(t, f.Name()))
		})
	}
}

// has asserts which objects a release has.
func (r *release) has(t *testing.T, kinds map[string]int) {
	t.Helper()
	if !reflect.DeepEqual(r.kinds, kinds) {
		t.Errorf("rendered %v, want %v", r.kinds, kinds)
	}
}

// says asserts that the configuration has these lines.
func (r *release) says(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !slices.Contains(strings.Split(r.config(), "\n"), line) {
			t.Errorf("no line %q in\n%s", line, r.config())
		}
	}
}

func embedded(t *testing.T, r *release) {
	r.has(t, map[string]int{"ConfigMap": 1, "Service": 1, "ServiceAccount": 1, "ServiceMonitor": 1, "StatefulSet": 1})
	s := r.statefulSet.Spec
	if *s.Replicas != 1 || len(s.VolumeClaimTemplates) != 1 {
		t.Fatalf("%d replicas, %d volumes", *s.Replicas, len(s.VolumeClaimTemplates))
	}
	if s.PersistentVolumeClaimRetentionPolicy.WhenDeleted != appsv1.RetainPersistentVolumeClaimRetentionPolicyType {
		t.Error("the log is deleted with the release")
	}
	claim := s.VolumeClaimTemplates[0].Spec
	if size := claim.Resources.Requests.Storage().String(); size != "80Gi" || *claim.StorageClassName != "fast" {
		t.Errorf("a volume of %s, class %s", size, *claim.StorageClassName)
	}
	r.says(t, "  dir: /data/log", "scratch: /data/scratch", "  listen: :9464")
	if r.accounts["shop-tailrace"].Annotations["eks.amazonaws.com/role-arn"] == "" {
		t.Errorf("accounts %v", r.accounts)
	}
}

func external(t *testing.T, r *release) {
	r.has(t, map[string]int{"ConfigMap": 2, "Service": 1, "ServiceAccount": 1, "Deployment": 1, "PodDisruptionBudget": 1})
	if *r.deployment.Spec.Replicas != 3 || r.pdb.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("replicas %d, budget %v", *r.deployment.Spec.Replicas, r.pdb.Spec.MaxUnavailable)
	}
	env := environment(r.pod.Spec.Containers[0])
	if env["AWS_WEB_IDENTITY_TOKEN_FILE"] == "" || env["GOOGLE_APPLICATION_CREDENTIALS"] == "" ||
		env["GOMEMLIMIT"] != "400MiB" {
		t.Errorf("environment %v", env)
	}
	if from := r.pod.Spec.Containers[0].EnvFrom; len(from) != 1 || from[0].SecretRef.Name != "tailrace-nats" {
		t.Errorf("environment from %v", from)
	}
	scratch := slices.IndexFunc(r.pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "scratch" })
	if scratch < 0 || r.pod.Spec.Volumes[scratch].EmptyDir.SizeLimit.String() != "20Gi" {
		t.Errorf("volumes %v", r.pod.Spec.Volumes)
	}
	if !slices.Contains(r.pod.Spec.Containers[0].Args, "--log-level=debug") || r.pod.Annotations["a"] != "b" ||
		r.pod.Labels["team"] != "data" || len(r.pod.Spec.TopologySpreadConstraints) != 1 || len(r.pod.Spec.Tolerations) != 1 {
		t.Errorf("pod %+v", r.pod)
	}
	r.says(t, "scratch: /scratch")
	ephemeral(t, r.pod.Spec.Containers[0], "21Gi") // 20 scratch, 1 tmp
}

func minimal(t *testing.T, r *release) {
	r.has(t, map[string]int{"ConfigMap": 1, "Service": 1, "ServiceAccount": 1, "StatefulSet": 1})
	if *r.pod.Spec.TerminationGracePeriodSeconds != 40 {
		t.Errorf("grace period of %d s, want the 25 s of shutdown_timeout and 15", *r.pod.Spec.TerminationGracePeriodSeconds)
	}
	if user := r.pod.Spec.SecurityContext.RunAsUser; user == nil || *user != 65532 || len(r.pod.Spec.Containers) != 1 {
		t.Errorf("user %v, %d containers", user, len(r.pod.Spec.Containers))
	}
	unspread(t, r)
	ephemeral(t, r.pod.Spec.Containers[0], "1Gi") // scratch is on the log's volume
	if image := r.pod.Spec.Containers[0].Image; image != "tailrace/replicator:0.1.0" {
		t.Errorf("image %s is not that of the chart's version", image)
	}
}

func names(t *testing.T, r *release) {
	if r.statefulSet.Name != "shop-cdc" || r.service.Name != "shop-cdc" || r.statefulSet.Spec.ServiceName != "shop-cdc" ||
		r.pod.Spec.ServiceAccountName != "shop-cdc" || r.accounts["shop-cdc"].Name == "" || r.maps["shop-cdc"].Name == "" {
		t.Errorf("stateful set %s, service %s, account %s", r.statefulSet.Name, r.service.Name, r.pod.Spec.ServiceAccountName)
	}
	if name := r.pod.Labels["app.kubernetes.io/name"]; name != "replicator" {
		t.Errorf("app.kubernetes.io/name: %s", name)
	}
}

func alerts(t *testing.T, r *release) {
	if r.rule == nil || r.rule.Labels["release"] != "prometheus" || r.monitor.Labels["release"] != "prometheus" {
		t.Fatalf("rule %v, monitor %v", r.rule, r.monitor)
	}
	text, err := os.ReadFile("../../deploy/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, group := range r.rule.Spec.Groups {
		for _, rule := range group.Rules {
			if n++; !strings.Contains(string(text), rule.Expr.String()) || rule.Annotations["summary"] == "" ||
				!strings.Contains(string(text), rule.Annotations["runbook_url"]+"\n") {
				t.Errorf("rule %+v is not one of deploy/alerts.yaml", rule)
			}
		}
	}
	if want := strings.Count(string(text), "- alert: "); n != want || n == 0 {
		t.Errorf("%d alerts, want %d", n, want)
	}
	board := r.maps["shop-tailrace-dashboard"]
	shown, err := os.ReadFile("../../deploy/grafana/dashboards/tailrace.json")
	if err != nil || board.Labels["grafana_dashboard"] != "tailrace" || board.Data["tailrace.json"] != string(shown) {
		t.Errorf("the dashboard has the labels %v and %d bytes, want %d; %v", board.Labels, len(board.Data["tailrace.json"]),
			len(shown), err)
	}
	if e := r.monitor.Spec.Endpoints[0]; e.Port != "admin" || e.Interval != "30s" || e.Path != "/metrics" {
		t.Errorf("scraped: %+v", e)
	}
	if port := r.pod.Spec.Containers[0].Ports[0].ContainerPort; port != 9000 || r.service.Spec.Ports[0].Port != 9000 {
		t.Errorf("container port %d", port)
	}
	r.says(t, "  listen: :9000")
}

// egressPorts returns where a policy lets packets go: the port, and how many peers it is limited
// to.
func egressPorts(p networkingv1.NetworkPolicy) map[string]int {
	ports := map[string]int{}
	for _, rule := range p.Spec.Egress {
		for _, port := range rule.Ports {
			name := port.Port.String()
			if port.Protocol != nil {
				name += "/" + string(*port.Protocol)
			}
			ports[name] += len(rule.To)
		}
	}
	return ports
}

func networkEmbedded(t *testing.T, r *release) {
	p := r.policies["shop-tailrace"]
	if !slices.Contains(p.Spec.PolicyTypes, "Egress") || !slices.Contains(p.Spec.PolicyTypes, "Ingress") {
		t.Fatalf("the policy holds for %v", p.Spec.PolicyTypes)
	}
	want := map[string]int{"53/UDP": 0, "53/TCP": 0, "443": 0, "80": 4, "988": 1}
	if got := egressPorts(p); !reflect.DeepEqual(got, want) {
		t.Errorf("egress to %v, want %v", got, want)
	}
	in := p.Spec.Ingress
	if len(in) != 1 || len(in[0].From) != 0 || len(in[0].Ports) != 1 ||
		*in[0].Ports[0].Port != intstr.FromString("admin") {
		t.Errorf("ingress %v", in)
	}
}

func networkExternal(t *testing.T, r *release) {
	p := r.policies["shop-tailrace"]
	want := map[string]int{"53/UDP": 0, "53/TCP": 0, "443": 0, "4222": 1, "8000": 0}
	if got := egressPorts(p); !reflect.DeepEqual(got, want) {
		t.Errorf("egress to %v, want %v", got, want)
	}
	if in := p.Spec.Ingress; len(in) != 1 || len(in[0].From) != 1 || in[0].From[0].NamespaceSelector == nil {
		t.Errorf("ingress %v", in)
	}
	if *r.deployment.Spec.Replicas != 2 {
		t.Errorf("%d replicas by default", *r.deployment.Spec.Replicas)
	}
	spread(t, r)
}

// hooked asserts that all that the schema Job needs exists before the release does.
func hooked(t *testing.T, r *release) {
	t.Helper()
	const hook, weight = "helm.sh/hook", "helm.sh/hook-weight"
	all := map[string]map[string]string{"the Job": r.job.Annotations}
	pod := r.job.Spec.Template.Spec
	all["account "+pod.ServiceAccountName] = r.accounts[pod.ServiceAccountName].Annotations
	for _, v := range pod.Volumes {
		if v.Projected != nil && v.Projected.Sources[0].ConfigMap != nil {
			for _, s := range v.Projected.Sources {
				all["map "+s.ConfigMap.Name] = r.maps[s.ConfigMap.Name].Annotations
			}
		}
		if v.ConfigMap != nil {
			all["map "+v.ConfigMap.Name] = r.maps[v.ConfigMap.Name].Annotations
		}
	}
	for what, annotations := range all {
		if annotations[hook] != "pre-install,pre-upgrade" {
			t.Errorf("%s is not made before the release: %v", what, annotations)
		}
		if first := strings.HasPrefix(annotations[weight], "-"); first == (what == "the Job") {
			t.Errorf("%s has weight %s", what, annotations[weight])
		}
	}
	for _, m := range []map[string]string{r.service.Annotations, r.accounts["shop-tailrace"].Annotations,
		r.maps["shop-tailrace"].Annotations} {
		if m[hook] != "" {
			t.Errorf("an object of the release is a hook: %v", m)
		}
	}
	if r.maps["shop-tailrace-schema"].Data["tailrace.yaml"] != r.config() {
		t.Error("the Job reads another configuration than the replicator")
	}
}

func schemaJob(t *testing.T, r *release) {
	r.has(t, map[string]int{"ConfigMap": 2, "Job": 1, "Service": 1, "ServiceAccount": 2, "StatefulSet": 1})
	hooked(t, r)
	pod := r.job.Spec.Template.Spec
	want := []string{"schema", "--apply", "--config=/etc/tailrace/tailrace.yaml", "--splits"}
	if args := pod.Containers[0].Args; !slices.Equal(args, want) {
		t.Errorf("the Job runs %v", args)
	}
	const role = "eks.amazonaws.com/role-arn"
	if pod.ServiceAccountName == r.pod.Spec.ServiceAccountName ||
		r.accounts[pod.ServiceAccountName].Annotations[role] == r.accounts["shop-tailrace"].Annotations[role] {
		t.Errorf("the Job has the identity of the replicator, %s", pod.ServiceAccountName)
	}
	if pod.RestartPolicy != corev1.RestartPolicyNever || *r.job.Spec.BackoffLimit != 3 {
		t.Errorf("restart %s, back-off %d", pod.RestartPolicy, *r.job.Spec.BackoffLimit)
	}
}

func schemaJobFederated(t *testing.T, r *release) {
	hooked(t, r)
	pod := r.job.Spec.Template.Spec
	env, own := environment(pod.Containers[0]), environment(r.pod.Spec.Containers[0])
	if env["AWS_ROLE_ARN"] != own["AWS_ROLE_ARN"]+"-schema" || env["TAILRACE_PII_2"] != "sealing/old" {
		t.Errorf("environment %v", env)
	}
	if !strings.Contains(r.maps["shop-tailrace-schema"].Data["credentials.json"], "impersonation") ||
		strings.Contains(r.maps["shop-tailrace"].Data["credentials.json"], "impersonation") {
		t.Error("the Job and the replicator have each other's credentials")
	}
	if len(pod.Containers[0].EnvFrom) != 1 {
		t.Error("the configuration's variables are not set in the Job")
	}
	p := r.policies["shop-tailrace-schema"]
	if matcher(t, &p.Spec.PodSelector).String() == "" || !slices.Contains(p.Spec.PolicyTypes, "Ingress") ||
		p.Spec.Ingress != nil || p.Annotations["helm.sh/hook"] == "" {
		t.Errorf("policy of the Job: %+v", p)
	}
	r.says(t, "- ${TAILRACE_PII_1}", "- ${TAILRACE_PII_2}")
}

func archiveOnly(t *testing.T, r *release) {
	// 5 + 1 for the log, 10 for the archive's stream, 1 scratch, 2 spare: 19 of 20.
	if size := r.statefulSet.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String(); size != "20Gi" {
		t.Errorf("a volume of %s", size)
	}
	r.has(t, map[string]int{"ConfigMap": 1, "Service": 1, "ServiceAccount": 1, "StatefulSet": 1})
}

func stopped(t *testing.T, r *release) {
	if *r.statefulSet.Spec.Replicas != 0 {
		t.Errorf("%d replicas", *r.statefulSet.Spec.Replicas)
	}
}

func slowDrain(t *testing.T, r *release) {
	if got := *r.pod.Spec.TerminationGracePeriodSeconds; got != 91+15 {
		t.Errorf("grace period of %d s after shutdown_timeout 1m30.5s", got)
	}
}

func manyTables(t *testing.T, r *release) {
	if size := r.statefulSet.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String(); size != "150Gi" {
		t.Errorf("a volume of %s", size)
	}
}

func selections(t *testing.T, r *release) {
	if size := r.statefulSet.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String(); size != "88Gi" {
		t.Errorf("a volume of %s", size)
	}
	r.says(t, "- source: orders-*")
}

func limitsFromEnvironment(t *testing.T, r *release) {
	if got := *r.pod.Spec.TerminationGracePeriodSeconds; got != 60 {
		t.Errorf("grace period of %d s", got)
	}
	r.says(t, "  max_bytes: ${MAX_BYTES:-500GiB}", "shutdown_timeout: ${DRAIN:-45s}")
}

func privateImage(t *testing.T, r *release) {
	pod := r.pod.Spec
	c := pod.Containers[0]
	if !strings.HasPrefix(c.Image, "registry.example/tailrace/replicator@sha256:0123") || c.ImagePullPolicy != "Always" ||
		len(pod.ImagePullSecrets) != 1 || pod.ImagePullSecrets[0].Name != "registry" {
		t.Errorf("image %s, secrets %v", c.Image, pod.ImagePullSecrets)
	}
	if r.kinds["ServiceAccount"] != 0 || pod.ServiceAccountName != "existing" || pod.PriorityClassName != "important" ||
		pod.Affinity.NodeAffinity == nil || c.StartupProbe.FailureThreshold != 720 || c.StartupProbe.PeriodSeconds != 5 {
		t.Errorf("pod %+v", pod)
	}
	if c.Resources.Limits.Memory().String() != "1Gi" || c.Resources.Requests.Memory().String() != "384Mi" {
		t.Errorf("resources %v", c.Resources)
	}
}
