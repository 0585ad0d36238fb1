// Package chart renders deploy/helm and decodes what comes out as strictly as the API server can: a
// key that Kubernetes would drop in silence is an error here. It also reads the files of docker
// compose and the Dockerfile.
package chart

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

const chartDir = "../../deploy/helm"

// helm runs helm, $HELM or the one of this module, and returns its output; with an error, what it
// wrote to stderr.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	name := os.Getenv("HELM")
	if name == "" {
		name, args = "go", append([]string{"tool", "helm"}, args...)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out) + stderr.String(), err
	}
	return string(out), nil
}

// render runs `helm template` with a file of deploy/helm/ci.
func render(t *testing.T, values string, more ...string) (string, error) {
	t.Helper()
	args := append([]string{"template", "shop", chartDir}, more...)
	if values != "" {
		args = append(args, "--values", filepath.Join(chartDir, "ci", values))
	}
	return helm(t, args...)
}

// release is what was rendered. The maps are by name.
type release struct {
	maps        map[string]corev1.ConfigMap
	accounts    map[string]corev1.ServiceAccount
	policies    map[string]networkingv1.NetworkPolicy
	service     corev1.Service
	statefulSet *appsv1.StatefulSet
	deployment  *appsv1.Deployment
	job         *batchv1.Job
	crons       map[string]batchv1.CronJob
	pdb         *policyv1.PodDisruptionBudget
	monitor     *monitoringv1.ServiceMonitor
	rule        *monitoringv1.PrometheusRule
	pod         *corev1.PodTemplateSpec // of the replicator
	kinds       map[string]int
}

// config returns the configuration that the replicator reads.
func (r *release) config() string { return r.maps[r.service.Name].Data["tailrace.yaml"] }

// decode decodes all documents strictly.
func decode(t *testing.T, text string) *release {
	t.Helper()
	r := &release{
		maps: map[string]corev1.ConfigMap{}, accounts: map[string]corev1.ServiceAccount{},
		policies: map[string]networkingv1.NetworkPolicy{}, crons: map[string]batchv1.CronJob{}, kinds: map[string]int{},
	}
	for doc := range strings.SplitSeq(text, "\n---\n") {
		var head struct{ Kind string }
		if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		r.kinds[head.Kind]++
		if err := r.add(head.Kind, []byte(doc)); err != nil {
			t.Errorf("%v in\n%s", err, doc)
		}
	}
	switch {
	case r.statefulSet != nil:
		r.pod = &r.statefulSet.Spec.Template
	case r.deployment != nil:
		r.pod = &r.deployment.Spec.Template
	default:
		t.Fatalf("no workload in\n%s", text)
	}
	return r
}

// strict decodes a document into a type of the API as the API server does when it is asked to
// validate fields: unknown and duplicate keys are errors, and so is one in the wrong case.
func strict[T any](doc []byte) (*T, error) {
	v := new(T)
	text, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return v, err
	}
	problems, err := json.UnmarshalStrict(text, v)
	return v, errors.Join(append(problems, err)...)
}

func (r *release) add(kind string, doc []byte) (err error) {
	switch kind {
	case "ConfigMap":
		m, err := strict[corev1.ConfigMap](doc)
		r.maps[m.Name] = *m
		return err
	case "ServiceAccount":
		a, err := strict[corev1.ServiceAccount](doc)
		r.accounts[a.Name] = *a
		return err
	case "NetworkPolicy":
		p, err := strict[networkingv1.NetworkPolicy](doc)
		r.policies[p.Name] = *p
		return err
	case "Service":
		s, err := strict[corev1.Service](doc)
		r.service = *s
		return err
	case "StatefulSet":
		r.statefulSet, err = strict[appsv1.StatefulSet](doc)
	case "Deployment":
		r.deployment, err = strict[appsv1.Deployment](doc)
	case "Job":
		r.job, err = strict[batchv1.Job](doc)
	case "CronJob":
		c, err := strict[batchv1.CronJob](doc)
		r.crons[c.Name] = *c
		return err
	case "PodDisruptionBudget":
		r.pdb, err = strict[policyv1.PodDisruptionBudget](doc)
	case "ServiceMonitor":
		r.monitor, err = strict[monitoringv1.ServiceMonitor](doc)
	case "PrometheusRule":
		r.rule, err = strict[monitoringv1.PrometheusRule](doc)
	default:
		return &unexpectedKind{kind}
	}
	return err
}

// unexpectedKind is an object that no test looks at.
type unexpectedKind struct{ kind string }

func (e *unexpectedKind) Error() string { return "unexpected kind " + e.kind }

// rendered returns what a file of deploy/helm/ci makes, after all that must hold for every release
// has been asserted.
func rendered(t *testing.T, values string) *release {
	t.Helper()
	text, err := render(t, values)
	if err != nil {
		t.Fatal(err, text)
	}
	r := decode(t, text)
	every(t, r)
	return r
}
