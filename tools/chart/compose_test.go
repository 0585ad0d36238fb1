package chart

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"sigs.k8s.io/yaml"
)

// composed loads docker-compose.yml as docker compose does: against the schema of the Compose
// Specification, which refuses unknown keys.
func composed(t *testing.T, profiles ...string) *types.Project {
	t.Helper()
	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  dir,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(dir, "docker-compose.yml")}},
		Environment: types.Mapping{},
	}, func(o *loader.Options) { o.Profiles = profiles })
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// TestComposeIsWhole: what services refer to exists, is pinned, and is reached from this machine
// only.
func TestComposeIsWhole(t *testing.T) {
	project := composed(t, "observe")
	pinned := regexp.MustCompile(`^[^:@]+:v?[0-9]+\.[0-9]+\.[0-9]+(-[a-z]+)?(@sha256:[0-9a-f]{64})?$`)
	for name, s := range project.Services {
		if s.Build == nil && !pinned.MatchString(s.Image) {
			t.Errorf("%s: image %q has no tag that stays what it is", name, s.Image)
		}
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s is open to the network", name, p.Published)
			}
		}
		for _, v := range s.Volumes {
			_, err := os.Stat(v.Source)
			if _, declared := project.Volumes[v.Source]; v.Type == types.VolumeTypeBind && err != nil ||
				v.Type == types.VolumeTypeVolume && !declared {
				t.Errorf("%s: %s %s: %v", name, v.Type, v.Source, err)
			}
		}
		if s.Build != nil && (!s.ReadOnly || !slices.Contains(s.Tmpfs, "/tmp")) {
			t.Errorf("%s: the root file system is not as in the chart", name)
		}
	}
	used := map[string]bool{}
	for _, s := range project.Services {
		for _, v := range s.Volumes {
			used[v.Source] = true
		}
	}
	for name := range project.Volumes {
		if !used[name] {
			t.Errorf("volume %s is not used", name)
		}
	}
}

// TestComposeServicesWaitForHealthyOnes: a service either ends, and others wait for that, or says
// how it is.
func TestComposeServicesWaitForHealthyOnes(t *testing.T) {
	project := composed(t, "observe")
	ends := map[string]bool{}
	for name, s := range project.Services {
		for on, dependency := range s.DependsOn {
			checked := project.Services[on].HealthCheck != nil
			switch dependency.Condition {
			case types.ServiceConditionCompletedSuccessfully:
				ends[on] = true
			case types.ServiceConditionHealthy:
				if !checked {
					t.Errorf("%s waits for the health of %s, which has no check", name, on)
				}
			default:
				t.Errorf("%s waits for %s: %s, which may not answer yet", name, on, dependency.Condition)
			}
		}
	}
	for name, s := range project.Services {
		if ends[name] == (s.HealthCheck != nil) {
			t.Errorf("%s: others wait for its end: %v, health check: %v", name, ends[name], s.HealthCheck)
		}
	}
}

// TestComposeWithoutProfileObservesNothing: Prometheus and Grafana are opt-in.
func TestComposeWithoutProfileObservesNothing(t *testing.T) {
	names := composed(t).ServiceNames()
	want := []string{"bigtable", "dynamodb", "nats", "replicator", "schema", "table"}
	if slices.Sort(names); !slices.Equal(names, want) {
		t.Errorf("services %v, want %v", names, want)
	}
}

// TestComposeReplicator: the program reads its configuration, has the time to drain, and says
// itself how it is.
func TestComposeReplicator(t *testing.T) {
	project := composed(t)
	s := project.Services["replicator"]
	if grace := time.Duration(*s.StopGracePeriod); grace <= 25*time.Second {
		t.Errorf("killed after %s, before it has drained (shutdown_timeout: 25s)", grace)
	}
	path := filepath.Join(t.TempDir(), "tailrace.yaml")
	if err := os.WriteFile(path, []byte(project.Configs["tailrace"].Content), 0o600); err != nil {
		t.Fatal(err)
	}
	var configFlags int
	for _, command := range [][]string{s.HealthCheck.Test, project.Services["schema"].Command} {
		if i := slices.Index(command, "--config"); i >= 0 && command[i+1] == s.Configs[0].Target {
			configFlags++
		}
	}
	if configFlags != 2 || s.Configs[0].Target != "/etc/tailrace/tailrace.yaml" {
		t.Errorf("the configuration is at %s, the check reads %v", s.Configs[0].Target, s.HealthCheck.Test)
	}
	program := os.Getenv("REPLICATOR")
	if program == "" {
		t.Skip("REPLICATOR is not set: the program was not asked")
	}
	// The command exists with its flags: without a server it fails for that reason, and not for its
	// usage (exit code 2).
	command := slices.Replace(slices.Clone(s.HealthCheck.Test[2:]), 3, 4, path)
	out, err := exec.CommandContext(t.Context(), program, append(command, "--timeout", "1ms")...).CombinedOutput()
	var exit *exec.ExitError
	if e, ok := err.(*exec.ExitError); ok {
		exit = e
	}
	if exit == nil || exit.ExitCode() == 2 || strings.Contains(string(out), "unknown flag") {
		t.Errorf("%v: %v\n%s", command, err, out)
	}
}

// TestComposeObserves: Prometheus scrapes the replicator with the alerts, and Grafana asks that
// Prometheus.
func TestComposeObserves(t *testing.T) {
	project := composed(t, "observe")
	mounts := map[string]string{} // where the files of deploy are in the containers
	for _, name := range []string{"prometheus", "grafana"} {
		for _, v := range project.Services[name].Volumes {
			if v.Type == types.VolumeTypeBind {
				mounts[filepath.Base(v.Source)] = v.Target
			}
		}
	}
	var prometheus struct {
		Global struct {
			ScrapeInterval     string `json:"scrape_interval"`
			EvaluationInterval string `json:"evaluation_interval"`
		} `json:"global"`
		RuleFiles     []string `json:"rule_files"`
		ScrapeConfigs []struct {
			JobName       string `json:"job_name"`
			StaticConfigs []struct {
				Targets []string `json:"targets"`
			} `json:"static_configs"`
		} `json:"scrape_configs"`
	}
	decodeFile(t, "deploy/prometheus.yaml", &prometheus)
	published := project.Services["replicator"].Ports[0].Target
	target := prometheus.ScrapeConfigs[0].StaticConfigs[0].Targets[0]
	if want := fmt.Sprintf("replicator:%d", published); target != want ||
		!strings.Contains(project.Configs["tailrace"].Content, fmt.Sprintf(`listen: "0.0.0.0:%d"`, published)) {
		t.Errorf("Prometheus scrapes %s, want %s", target, want)
	}
	dir := filepath.Dir(mounts["prometheus.yaml"])
	if !slices.Contains(project.Services["prometheus"].Command, "--config.file="+mounts["prometheus.yaml"]) ||
		mounts["alerts.yaml"] != filepath.Join(dir, prometheus.RuleFiles[0]) {
		t.Errorf("Prometheus has %v and reads %v", mounts, prometheus.RuleFiles)
	}
	var sources struct {
		APIVersion  int `json:"apiVersion"`
		Datasources []struct {
			Name, UID, Type, Access, URL string
			IsDefault                    bool           `json:"isDefault"`
			JSONData                     map[string]any `json:"jsonData"`
		}
	}
	decodeFile(t, "deploy/grafana/provisioning/datasources/prometheus.yaml", &sources)
	if s := sources.Datasources[0]; s.URL != "http://prometheus:9090" || s.UID != "prometheus" || s.Type != "prometheus" {
		t.Errorf("Grafana asks %+v", s)
	}
	var dashboards struct {
		APIVersion int `json:"apiVersion"`
		Providers  []struct {
			Name, Type, Folder string
			DisableDeletion    bool `json:"disableDeletion"`
			AllowUIUpdates     bool `json:"allowUiUpdates"`
			Options            struct{ Path string }
		}
	}
	decodeFile(t, "deploy/grafana/provisioning/dashboards/tailrace.yaml", &dashboards)
	if got := dashboards.Providers[0].Options.Path; got != mounts["dashboards"] || got == "" {
		t.Errorf("Grafana looks for dashboards in %s, they are mounted at %s", got, mounts["dashboards"])
	}
}

// decodeFile decodes a YAML file of the repository strictly.
func decodeFile(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
