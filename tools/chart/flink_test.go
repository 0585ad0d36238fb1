package chart

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestFlinkExample: each document is decoded as the API server does, and the job's endpoint is the
// service's port for jobs.
func TestFlinkExample(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "deploy", "flink.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var service *corev1.Service
	var job *batchv1.Job
	kinds := map[string]int{}
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		var head struct{ Kind string }
		if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
			t.Fatal(err)
		}
		kinds[head.Kind]++
		switch head.Kind {
		case "ConfigMap":
			_, err = strict[corev1.ConfigMap]([]byte(doc))
		case "Service":
			service, err = strict[corev1.Service]([]byte(doc))
		case "Deployment":
			_, err = strict[appsv1.Deployment]([]byte(doc))
		case "Job":
			job, err = strict[batchv1.Job]([]byte(doc))
		default:
			t.Errorf("a %s", head.Kind)
		}
		if err != nil {
			t.Errorf("%s: %v", head.Kind, err)
		}
	}
	if service == nil || job == nil || kinds["Deployment"] != 2 || kinds["ConfigMap"] != 1 {
		t.Fatalf("%v", kinds)
	}
	args := job.Spec.Template.Spec.Containers[0].Args
	jobs := slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == "jobs" && p.Port == 8099 })
	if !jobs || !slices.Contains(args, "--endpoint="+service.Name+":8099") {
		t.Errorf("ports %v, arguments %v", service.Spec.Ports, args)
	}
}
