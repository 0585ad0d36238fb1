// Package chart renders deploy/helm and decodes what comes out as strictly as the API server can: a key that Kubernetes
// would drop in silence is an error here.
package chart

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

const chartDir = "../../deploy/helm"

// render runs `helm template`: $HELM, or the one of this module.
func render(t *testing.T, values string, more ...string) (string, error) {
	t.Helper()
	args := append([]string{"template", "shop", chartDir}, more...)
	if values != "" {
		args = append(args, "--values", filepath.Join(chartDir, "ci", values))
	}
	name := os.Getenv("HELM")
	if name == "" {
		name, args = "go", append([]string{"tool", "helm"}, args...)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return stderr.String(), err
	}
	return string(out), nil
}

// release is what was rendered, by kind.
type release struct {
	config      map[string]string
	mappings    map[string]string
	pod         *corev1.PodSpec
	statefulSet *appsv1.StatefulSet
	deployment  *appsv1.Deployment
	pdb         *policyv1.PodDisruptionBudget
	kinds       map[string]int
}

func decode(t *testing.T, text string) *release {
	t.Helper()
	r := &release{kinds: map[string]int{}}
	strict := func(doc string, into any) {
		if err := yaml.UnmarshalStrict([]byte(doc), into); err != nil {
			t.Errorf("%v in\n%s", err, doc)
		}
	}
	for doc := range strings.SplitSeq(text, "\n---\n") {
		var head struct{ Kind string }
		if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		r.kinds[head.Kind]++
		switch head.Kind {
		case "ConfigMap":
			var m corev1.ConfigMap
			strict(doc, &m)
			if strings.HasSuffix(m.Name, "-mappings") {
				r.mappings = m.Data
			} else {
				r.config = m.Data
			}
		case "StatefulSet":
			r.statefulSet = &appsv1.StatefulSet{}
			strict(doc, r.statefulSet)
			r.pod = &r.statefulSet.Spec.Template.Spec
		case "Deployment":
			r.deployment = &appsv1.Deployment{}
			strict(doc, r.deployment)
			r.pod = &r.deployment.Spec.Template.Spec
		case "PodDisruptionBudget":
			r.pdb = &policyv1.PodDisruptionBudget{}
			strict(doc, r.pdb)
		case "Service":
			strict(doc, &corev1.Service{})
		case "ServiceAccount":
			strict(doc, &corev1.ServiceAccount{})
		case "ServiceMonitor": // of another project's API
		default:
			t.Errorf("unexpected kind %q", head.Kind)
		}
	}
	return r
}

func rendered(t *testing.T, values string) *release {
	t.Helper()
	text, err := render(t, values)
	if err != nil {
		t.Fatal(err, text)
	}
	r := decode(t, text)
	if r.pod == nil || len(r.pod.Containers) != 1 {
		t.Fatalf("no pod in\n%s", text)
	}
	hardened(t, r.pod)
	accepted(t, r)
	return r
}

// hardened asserts what every pod of the chart promises.
func hardened(t *testing.T, pod *corev1.PodSpec) {
	t.Helper()
	c := pod.Containers[0]
	s := c.SecurityContext
	switch {
	case pod.SecurityContext.RunAsNonRoot == nil || !*pod.SecurityContext.RunAsNonRoot:
		t.Error("may run as root")
	case s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem:
		t.Error("root file system can be written")
	case s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || len(s.Capabilities.Drop) != 1:
		t.Error("may escalate")
	case c.StartupProbe.HTTPGet.Path != "/startupz" || c.LivenessProbe.HTTPGet.Path != "/livez":
		t.Error("probes ask the wrong paths")
	case c.ReadinessProbe != nil:
		t.Error("a lagging table must not take the pod away")
	case *pod.TerminationGracePeriodSeconds <= 25:
		t.Error("killed before it can drain")
	}
	mounted := map[string]bool{}
	for _, m := range c.VolumeMounts {
		mounted[m.Name] = true
	}
	for _, v := range pod.Volumes {
		if !mounted[v.Name] {
			t.Errorf("volume %s is not mounted", v.Name)
		}
		delete(mounted, v.Name)
	}
	if delete(mounted, "data"); len(mounted) > 0 {
		t.Errorf("mounts without volumes: %v", mounted)
	}
}

// accepted lets the program itself read the configuration that the chart wrote ($REPLICATOR; `make chart` sets it).
func accepted(t *testing.T, r *release) {
	t.Helper()
	program := os.Getenv("REPLICATOR")
	if program == "" {
		t.Log("REPLICATOR is not set: the configuration was not read by the program")
		return
	}
	dir := t.TempDir()
	files := map[string]string{"tailrace.yaml": r.config["tailrace.yaml"]}
	for name, text := range r.mappings {
		files[filepath.Join("mappings", name)] = text
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), program, "check", "--offline", "--config", filepath.Join(dir, "tailrace.yaml"))
	cmd.Env = append(os.Environ(), "NATS_URL=nats://nats:4222")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the program refuses the chart's configuration: %v\n%s", err, out)
	}
}

func TestEmbeddedIsOneReplicaWithAVolumeThatStays(t *testing.T) {
	r := rendered(t, "embedded.yaml")
	s := r.statefulSet
	if s == nil || r.kinds["Deployment"]+r.kinds["PodDisruptionBudget"] > 0 {
		t.Fatalf("rendered %v", r.kinds)
	}
	if *s.Spec.Replicas != 1 || len(s.Spec.VolumeClaimTemplates) != 1 {
		t.Errorf("%d replicas, %d volumes", *s.Spec.Replicas, len(s.Spec.VolumeClaimTemplates))
	}
	if s.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted != appsv1.RetainPersistentVolumeClaimRetentionPolicyType {
		t.Error("the log is deleted with the release")
	}
	if !strings.Contains(r.config["tailrace.yaml"], "dir: /data/log") || r.kinds["ServiceMonitor"] != 1 {
		t.Errorf("config:\n%s", r.config["tailrace.yaml"])
	}
}

func TestExternalNATSIsADeploymentWithABudget(t *testing.T) {
	r := rendered(t, "external.yaml")
	if r.deployment == nil || r.pdb == nil || r.statefulSet != nil {
		t.Fatalf("rendered %v", r.kinds)
	}
	if *r.deployment.Spec.Replicas != 3 || r.pdb.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("replicas %d, budget %v", *r.deployment.Spec.Replicas, r.pdb.Spec.MaxUnavailable)
	}
	for label, value := range r.pdb.Spec.Selector.MatchLabels {
		if r.deployment.Spec.Template.Labels[label] != value {
			t.Errorf("the budget looks for %s=%s, pods have %v", label, value, r.deployment.Spec.Template.Labels)
		}
	}
	env := map[string]string{}
	for _, e := range r.pod.Containers[0].Env {
		env[e.Name] = e.Value
	}
	if env["AWS_WEB_IDENTITY_TOKEN_FILE"] == "" || env["GOOGLE_APPLICATION_CREDENTIALS"] == "" {
		t.Errorf("credentials of both clouds are not in the pod: %v", env)
	}
}

// TestScratchAndSecrets: sorted runs have a place that can be written, and secrets reach the configuration without
// being in it.
func TestScratchAndSecrets(t *testing.T) {
	for values, place := range map[string]string{"embedded.yaml": "/data/scratch", "external.yaml": "/scratch"} {
		text, err := render(t, values, "--set", "piiSecrets.secret=sealing", "--set", "piiSecrets.keys={new,old}")
		if err != nil {
			t.Fatal(err, text)
		}
		r := decode(t, text)
		if c := r.config["tailrace.yaml"]; !strings.Contains(c, "scratch: "+place+"\n") ||
			!strings.Contains(c, "pii_secrets:\n- ${TAILRACE_PII_1}\n- ${TAILRACE_PII_2}\n") {
			t.Errorf("%s:\n%s", values, c)
		}
		found := map[string]string{}
		for _, e := range r.pod.Containers[0].Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				found[e.Name] = e.ValueFrom.SecretKeyRef.Name + "/" + e.ValueFrom.SecretKeyRef.Key
			}
		}
		if found["TAILRACE_PII_1"] != "sealing/new" || found["TAILRACE_PII_2"] != "sealing/old" {
			t.Errorf("%s: %v", values, found)
		}
		hasVolume := false
		for _, v := range r.pod.Volumes {
			hasVolume = hasVolume || v.Name == "scratch" && v.EmptyDir != nil
		}
		if hasVolume != (values == "external.yaml") {
			t.Errorf("%s: volume for scratch: %v", values, hasVolume)
		}
	}
}

func TestMistakesInValuesAreRefused(t *testing.T) {
	for name, args := range map[string][]string{
		"config.pipeline is required": nil,
		"needs at least one table":    {"--set", "config.pipeline=x"},
		"piiSecrets.secret is required": {
			"--values", filepath.Join(chartDir, "ci/external.yaml"), "--set", "piiSecrets.keys={new}",
		},
		"gcp.audience is required": {"--values", filepath.Join(chartDir, "ci/external.yaml"), "--set", "gcp.audience="},
		"needs a volume": {
			"--values", filepath.Join(chartDir, "ci/external.yaml"), "--set", "config.archive.file=/x",
		},
	} {
		if out, err := render(t, "", args...); err == nil || !strings.Contains(out, name) {
			t.Errorf("%v: %v, want %q in\n%s", args, err, name, out)
		}
	}
}
