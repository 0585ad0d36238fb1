package chart

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func rehearsals(t *testing.T, r *release) {
	r.has(t, map[string]int{"ConfigMap": 1, "CronJob": 2, "Deployment": 1, "NetworkPolicy": 2, "PodDisruptionBudget": 1,
		"Service": 1, "ServiceAccount": 1})
	products, sales := r.crons["shop-tailrace-rehearse-products"].Spec, r.crons["shop-tailrace-rehearse-sales"].Spec
	if products.Schedule != "0 3 * * *" || sales.Schedule != "30 3 * * *" {
		t.Errorf("schedules %q, %q", products.Schedule, sales.Schedule)
	}
	pod := sales.JobTemplate.Spec.Template.Spec
	want := []string{"cutover", "--rehearse", "--config=/etc/tailrace/tailrace.yaml", "--table=Orders", "--table=Carts", "--quiet=10s"}
	if args := pod.Containers[0].Args; !slices.Equal(args, want) {
		t.Errorf("it runs %v", args)
	}
	if pod.ServiceAccountName != r.pod.Spec.ServiceAccountName {
		t.Errorf("it reads with another identity, %s", pod.ServiceAccountName)
	}
	// A refusal ends with 4; another pod would read all items again to say the same.
	if n := *sales.JobTemplate.Spec.BackoffLimit; n != 0 || pod.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("back-off %d, restart %s", n, pod.RestartPolicy)
	}
	if a, b := *products.JobTemplate.Spec.ActiveDeadlineSeconds, *sales.JobTemplate.Spec.ActiveDeadlineSeconds; a != 21600 || b != 3600 {
		t.Errorf("they may take %d and %d s", a, b)
	}
	for claim, spec := range map[string]corev1.PodSpec{"": products.JobTemplate.Spec.Template.Spec, "sales-scratch": pod} {
		i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == "scratch" })
		if v := spec.Volumes[i]; (v.PersistentVolumeClaim == nil) != (claim == "") || claim != "" && v.PersistentVolumeClaim.ClaimName != claim {
			t.Errorf("scratch is %+v", v)
		}
	}
	own := sales.JobTemplate.Spec.Template.Labels
	p := r.policies["shop-tailrace-rehearsal"]
	wantPorts := map[string]int{"53/UDP": 0, "53/TCP": 0, "443": 0, "80": 4, "988": 1, "4222": 0}
	if got := egressPorts(p); !reflect.DeepEqual(got, wantPorts) {
		t.Errorf("egress to %v, want %v", got, wantPorts)
	}
	if !matcher(t, &p.Spec.PodSelector).Matches(set(own)) {
		t.Errorf("the policy is not for %v", own)
	}
}
