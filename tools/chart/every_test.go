package chart

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// every asserts what holds for each release, whatever its values are.
func every(t *testing.T, r *release) {
	t.Helper()
	restricted(t, r.pod)
	mounted(t, r.pod.Spec, r.statefulSet != nil)
	probed(t, r.pod.Spec)
	selected(t, r)
	referred(t, r, r.pod.Spec)
	for _, pod := range r.others() {
		restricted(t, &pod)
		mounted(t, pod.Spec, false)
		referred(t, r, pod.Spec)
	}
	accepted(t, r)
}

// others returns the pods that do not replicate: the schema Job's and those of rehearsals.
func (r *release) others() (pods []corev1.PodTemplateSpec) {
	if r.job != nil {
		pods = append(pods, r.job.Spec.Template)
	}
	for _, c := range r.crons {
		pods = append(pods, c.Spec.JobTemplate.Spec.Template)
	}
	return pods
}

// restricted lets the code of the admission controller judge a pod by the profile "restricted",
// which says nothing about the root file system.
func restricted(t *testing.T, pod *corev1.PodTemplateSpec) {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, check := range evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec) {
		if !check.Allowed {
			t.Errorf("the restricted profile refuses the pod: %s: %s", check.ForbiddenReason, check.ForbiddenDetail)
		}
	}
	s := pod.Spec.Containers[0].SecurityContext
	if s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
		t.Error("the root file system can be written")
	}
	if auto := pod.Spec.AutomountServiceAccountToken; auto == nil || *auto {
		t.Error("the pod gets a token for the API server, which it never asks")
	}
	if user := pod.Spec.SecurityContext.RunAsUser; user != nil && *user != 65532 {
		t.Error("the user is not the image's")
	}
}

// mounted asserts that volumes and mounts fit each other, and that there is a place for temporary
// files.
func mounted(t *testing.T, pod corev1.PodSpec, claims bool) {
	t.Helper()
	mounts := map[string]string{}
	for _, m := range pod.Containers[0].VolumeMounts {
		mounts[m.Name] = m.MountPath
	}
	if mounts["tmp"] != "/tmp" {
		t.Errorf("nothing can be written at /tmp: %v", mounts)
	}
	if _, ok := mounts["data"]; ok != claims {
		t.Errorf("mounts %v, a claim for a volume: %v", mounts, claims)
	}
	delete(mounts, "data")
	for _, v := range pod.Volumes {
		if _, ok := mounts[v.Name]; !ok {
			t.Errorf("volume %s is not mounted", v.Name)
		}
		delete(mounts, v.Name)
	}
	if len(mounts) > 0 {
		t.Errorf("mounts without volumes: %v", mounts)
	}
}

// probed asserts which questions Kubernetes asks.
func probed(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	c := pod.Containers[0]
	switch {
	case c.StartupProbe.HTTPGet.Path != "/startupz" || c.LivenessProbe.HTTPGet.Path != "/livez":
		t.Error("probes ask the wrong paths")
	case c.StartupProbe.PeriodSeconds*c.StartupProbe.FailureThreshold < 600:
		t.Error("a large embedded store is not given the time to be checked")
	case c.ReadinessProbe != nil:
		t.Error("a lagging table must not take the pod away")
	case *pod.TerminationGracePeriodSeconds <= 25:
		t.Error("killed before it can drain")
	}
}

// selected asserts that each selector finds what it is for, and never another pod.
func selected(t *testing.T, r *release) {
	t.Helper()
	own := set(r.pod.Labels)
	selectors := map[string]*metav1.LabelSelector{"the service": {MatchLabels: r.service.Spec.Selector}}
	if r.statefulSet != nil {
		selectors["the stateful set"] = r.statefulSet.Spec.Selector
	} else {
		selectors["the deployment"] = r.deployment.Spec.Selector
		selectors["the budget"] = r.pdb.Spec.Selector
	}
	if p, ok := r.policies[r.service.Name]; ok {
		selectors["the network policy"] = &p.Spec.PodSelector
	}
	for what, s := range selectors {
		selector := matcher(t, s)
		if n := len(s.MatchLabels) + len(s.MatchExpressions); n != 2 {
			t.Errorf("%s looks for %s: labels beside name and instance change with an upgrade", what, selector)
		}
		if !selector.Matches(own) {
			t.Errorf("%s looks for %s, the pod has %v", what, selector, own)
		}
		for _, pod := range r.others() {
			if selector.Matches(set(pod.Labels)) {
				t.Errorf("%s finds the pod %v", what, pod.Labels)
			}
		}
	}
	if r.service.Spec.ClusterIP != corev1.ClusterIPNone || !r.service.Spec.PublishNotReadyAddresses {
		t.Error("the service must name each pod, also one that is not ready")
	}
	if r.monitor != nil && !matcher(t, &r.monitor.Spec.Selector).Matches(set(r.service.Labels)) {
		t.Errorf("the monitor looks for %v, the service has %v", r.monitor.Spec.Selector, r.service.Labels)
	}
}

func set(of map[string]string) labels.Set { return of }

func matcher(t *testing.T, s *metav1.LabelSelector) labels.Selector {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil || selector.Empty() {
		t.Fatalf("selector %v: %v", s, err)
	}
	return selector
}

// referred asserts that a pod refers to ConfigMaps and keys that the release makes.
func referred(t *testing.T, r *release, pod corev1.PodSpec) {
	t.Helper()
	has := func(name string, items []corev1.KeyToPath) {
		t.Helper()
		for _, item := range items {
			if r.maps[name].Data[item.Key] == "" {
				t.Errorf("the pod mounts %s of ConfigMap %s, which has only %v", item.Key, name, r.maps[name].Data)
			}
		}
	}
	for _, v := range pod.Volumes {
		if v.ConfigMap != nil {
			has(v.ConfigMap.Name, v.ConfigMap.Items)
		}
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if source.ConfigMap != nil {
				has(source.ConfigMap.Name, source.ConfigMap.Items)
			}
		}
	}
	seen := map[string]bool{}
	for _, e := range pod.Containers[0].Env {
		if seen[e.Name] {
			t.Errorf("%s is set twice", e.Name)
		}
		seen[e.Name] = true
	}
}

// accepted lets the program itself read the configuration that the chart wrote ($REPLICATOR; `make
// chart` sets it).
func accepted(t *testing.T, r *release) {
	t.Helper()
	program := os.Getenv("REPLICATOR")
	if program == "" {
		t.Log("REPLICATOR is not set: the configuration was not read by the program")
		return
	}
	dir := t.TempDir()
	files := map[string]string{"tailrace.yaml": r.config()}
	for name, text := range r.maps[r.service.Name+"-mappings"].Data {
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
	cmd.Env = append(os.Environ(), "NATS_URL=nats://nats:4222",
		"TAILRACE_PII_1="+base64.StdEncoding.EncodeToString([]byte("the first secret, of 32 bytes...")),
		"TAILRACE_PII_2="+base64.StdEncoding.EncodeToString([]byte("the second secret, of 32 bytes..")))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the program refuses the chart's configuration: %v\n%s\n%s", err, out, r.config())
	}
}

// environment returns the variables of a container: their values, or where they come from.
func environment(c corev1.Container) map[string]string {
	env := map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = e.Value
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			env[e.Name] = fmt.Sprintf("%s/%s", e.ValueFrom.SecretKeyRef.Name, e.ValueFrom.SecretKeyRef.Key)
		}
	}
	return env
}
