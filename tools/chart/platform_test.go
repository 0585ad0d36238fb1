package chart

import (
	"slices"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// openShift asserts that no pod names a user or group: OpenShift's profile restricted-v2 refuses
// those of a chart, and takes the ones of the namespace.
func openShift(t *testing.T, r *release) {
	for name, pod := range map[string]corev1.PodSpec{"replicator": r.pod.Spec, "schema": r.job.Spec.Template.Spec} {
		s := pod.SecurityContext
		if s.RunAsUser != nil || s.RunAsGroup != nil || s.FSGroup != nil || !*s.RunAsNonRoot || s.SeccompProfile == nil {
			t.Errorf("%s: security context %+v", name, s)
		}
	}
}

// platform asserts that what a platform team sets arrives where it belongs.
func platform(t *testing.T, r *release) {
	platformMeta(t, r)
	platformPod(t, r)
	platformScrape(t, r)
	platformAlerts(t, r)
}

func platformMeta(t *testing.T, r *release) {
	t.Helper()
	objects := map[string]metav1.ObjectMeta{
		"service": r.service.ObjectMeta, "deployment": r.deployment.ObjectMeta, "job": r.job.ObjectMeta,
		"budget": r.pdb.ObjectMeta, "monitor": r.monitor.ObjectMeta, "rule": r.rule.ObjectMeta,
		"pod": r.pod.ObjectMeta, "job's pod": r.job.Spec.Template.ObjectMeta,
	}
	for name, m := range r.maps {
		objects["map "+name] = m.ObjectMeta
	}
	for name, a := range r.accounts {
		objects["account "+name] = a.ObjectMeta
	}
	for name, p := range r.policies {
		objects["policy "+name] = p.ObjectMeta
	}
	for what, m := range objects {
		team := "data"
		if what == "pod" || what == "job's pod" {
			team = "streams" // podLabels are nearer than commonLabels
		}
		if m.Labels["team"] != team || m.Annotations["owner"] != "data@example.com" {
			t.Errorf("%s has the labels %v and the annotations %v", what, m.Labels, m.Annotations)
		}
		if name := m.Labels["app.kubernetes.io/name"]; name != "tailrace" && name != "tailrace-schema" {
			t.Errorf("%s: a value replaced the label that selectors need: %s", what, name)
		}
	}
	if r.deployment.Labels["tier"] != "backend" || r.deployment.Annotations["reloader.example/auto"] != "true" ||
		r.accounts["shop-tailrace"].Labels["tier"] != "identity" ||
		r.accounts["shop-tailrace-schema"].Labels["tier"] != "identity" ||
		r.service.Annotations["a"] != "b" || r.monitor.Annotations["a"] != "b" || r.rule.Annotations["a"] != "b" ||
		r.maps["shop-tailrace-dashboard"].Annotations["grafana_folder"] != "Data" {
		t.Errorf("labels and annotations of single objects: %v %v", r.deployment.ObjectMeta, r.accounts)
	}
	if len(r.pod.Annotations["checksum/config"]) != 64 {
		t.Error("a value replaced the checksum that restarts pods with a new configuration")
	}
}

func platformPod(t *testing.T, r *release) {
	t.Helper()
	pod := r.pod.Spec
	if r.deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Errorf("updated by %v", r.deployment.Spec.Strategy)
	}
	if len(pod.InitContainers) != 1 || len(pod.Containers) != 2 || pod.Containers[0].Name != "replicator" {
		t.Errorf("%d containers before, %d beside", len(pod.InitContainers), len(pod.Containers))
	}
	job := r.job.Spec.Template.Spec
	if len(job.InitContainers) != 1 || len(job.Containers) != 1 {
		t.Errorf("the Job has %d containers before, %d beside", len(job.InitContainers), len(job.Containers))
	}
	if job.Affinity.PodAntiAffinity != nil {
		t.Error("the Job's pod keeps away from the replicas")
	}
	for _, p := range []corev1.PodSpec{pod, job} {
		if *p.DNSConfig.Options[0].Value != "2" || p.DNSPolicy != corev1.DNSClusterFirst || p.HostAliases[0].IP != "10.0.0.9" ||
			p.Containers[0].Resources.Requests.StorageEphemeral().String() != "2Gi" || p.Affinity.PodAffinity == nil {
			t.Errorf("pod %+v", p)
		}
	}
	spread(t, r)
}

// spread asserts where the chart puts several replicas, if the values do not say it: on different
// nodes and evenly over zones, but anywhere rather than nowhere.
func spread(t *testing.T, r *release) {
	t.Helper()
	pod := r.pod.Spec
	if pod.Affinity == nil || pod.Affinity.PodAntiAffinity == nil || len(pod.TopologySpreadConstraints) != 1 {
		t.Fatalf("several replicas are not spread: %+v, %+v", pod.Affinity, pod.TopologySpreadConstraints)
	}
	anti := pod.Affinity.PodAntiAffinity
	if len(anti.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		t.Error("with fewer nodes than replicas a pod would wait for ever")
	}
	term := anti.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm
	c := pod.TopologySpreadConstraints[0]
	if term.TopologyKey != corev1.LabelHostname || c.TopologyKey != corev1.LabelTopologyZone ||
		c.WhenUnsatisfiable != corev1.ScheduleAnyway {
		t.Errorf("spread by %s and %+v", term.TopologyKey, c)
	}
	for _, s := range []*metav1.LabelSelector{term.LabelSelector, c.LabelSelector} {
		if !matcher(t, s).Matches(set(r.pod.Labels)) {
			t.Errorf("%v does not find the replicas, %v", s, r.pod.Labels)
		}
	}
}

// unspread asserts that one replica has no rules about others.
func unspread(t *testing.T, r *release) {
	t.Helper()
	if r.pod.Spec.Affinity != nil || r.pod.Spec.TopologySpreadConstraints != nil {
		t.Errorf("one replica is spread: %+v", r.pod.Spec)
	}
}

// ephemeral asserts the room on the node's disk that the container requests.
func ephemeral(t *testing.T, c corev1.Container, want string) {
	t.Helper()
	if got := c.Resources.Requests.StorageEphemeral().String(); got != want {
		t.Errorf("%s requests %s of the node's disk, want %s", c.Name, got, want)
	}
}

func platformScrape(t *testing.T, r *release) {
	t.Helper()
	m, e := r.monitor.Spec, r.monitor.Spec.Endpoints[0]
	if m.JobLabel != "app.kubernetes.io/instance" || !slices.Contains(m.TargetLabels, "scrape") ||
		r.service.Labels["scrape"] != "yes" || e.ScrapeTimeout != "10s" || e.Interval != "15s" || len(e.RelabelConfigs) != 1 ||
		len(e.MetricRelabelConfigs) != 1 || e.MetricRelabelConfigs[0].Action != "drop" {
		t.Errorf("scraped: %+v", m)
	}
}

func platformAlerts(t *testing.T, r *release) {
	t.Helper()
	rules := map[string]monitoringv1.Rule{}
	for _, rule := range r.rule.Spec.Groups[0].Rules {
		rules[rule.Alert] = rule
	}
	for name, want := range map[string]string{
		"TailraceAppliedLagHigh": "max by (job, table) (tailrace_applied_lag_seconds) > 60",
		"TailraceDiskShort": "min by (job, instance) (tailrace_queue_disk_available_bytes - tailrace_queue_disk_untaken_bytes)" +
			" < 1.073741824e+09",
		"TailraceNoOwner":      "max by (job, table) (tailrace_table_owner) == 0 or absent(tailrace_table_owner)",
		"TailraceRetentionLow": "min by (job, table) (tailrace_source_retention_seconds) < 0.5",
		"TailraceGap":          "max by (job, table) (tailrace_gaps) > 0",
	} {
		expr := rules[name].Expr
		if got := expr.String(); got != want {
			t.Errorf("%s fires at %s, want %s", name, got, want)
		}
	}
	if _, ok := rules["TailraceHotRow"]; ok {
		t.Error("an alert that is off is there")
	}
	lag, owner := rules["TailraceAppliedLagHigh"], rules["TailraceNoOwner"]
	if lag.Labels["severity"] != "critical" || lag.Labels["team"] != "data" || *lag.For != "1m" ||
		owner.Labels["severity"] != "critical" || owner.Labels["page"] != "yes" || *owner.For != "5m" {
		t.Errorf("alerts %+v, %+v", lag, owner)
	}
	if got := lag.Annotations["runbook_url"]; got != "https://wiki.example/tailrace#tailraceappliedlaghigh" {
		t.Errorf("runbook %s", got)
	}
}
