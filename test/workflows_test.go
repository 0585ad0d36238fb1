package test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

var pinnedAction = regexp.MustCompile(`^\S+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)

// TestWorkflowsArePinned: actions are pinned by commits, whose tag stands beside them for
// dependabot, and no workflow names a registry: the variables of the repository do.
func TestWorkflowsArePinned(t *testing.T) {
	files, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d workflows: %v", len(files), err)
	}
	for _, file := range files {
		text := read(t, file)
		var w struct {
			Permissions any
			Jobs        map[string]any
		}
		if err := yaml.Load([]byte(text), &w); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if w.Permissions == nil || len(w.Jobs) == 0 {
			t.Errorf("%s: jobs get the permissions that the repository gives by default", file)
		}
		for line := range strings.Lines(text) {
			_, action, ok := strings.Cut(strings.TrimSpace(line), "uses: ")
			if ok && !strings.HasPrefix(action, "./") && !pinnedAction.MatchString(action) {
				t.Errorf("%s: %s is not pinned by a commit with its tag", file, action)
			}
		}
		for _, host := range []string{"ghcr.io", "docker.io", "quay.io", "gcr.io", "pkg.dev", "amazonaws.com"} {
			if strings.Contains(text, host) {
				t.Errorf("%s names the registry %s", file, host)
			}
		}
	}
}

// TestDependabotSeesEveryModule: each go.mod is in a directory that it looks at.
func TestDependabotSeesEveryModule(t *testing.T) {
	var config struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directories []string
		}
	}
	if err := yaml.Load([]byte(read(t, "../.github/dependabot.yml")), &config); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, u := range config.Updates {
		if u.Ecosystem == "gomod" {
			seen = append(seen, u.Directories...)
		}
	}
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || path == ".git" || path == "bin"):
			return fs.SkipDir
		case d.Name() != "go.mod":
			return nil
		}
		if !slices.Contains(seen, strings.TrimSuffix("/"+strings.TrimSuffix(path, "go.mod"), "/")) && path != "go.mod" {
			t.Errorf("dependabot does not look at %s", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestImageOfTheChartIsShown: Artifact Hub shows the image that the chart runs by default.
func TestImageOfTheChartIsShown(t *testing.T) {
	var chart struct {
		App         string `yaml:"appVersion"`
		Annotations map[string]string
	}
	if err := yaml.Load([]byte(read(t, chartDir+"/Chart.yaml")), &chart); err != nil {
		t.Fatal(err)
	}
	var images []struct{ Name, Image string }
	if err := yaml.Load([]byte(chart.Annotations["artifacthub.io/images"]), &images); err != nil {
		t.Fatal(err)
	}
	var repository string
	for _, v := range chartValues(t) {
		if v.name() == "image.repository" {
			repository = strings.Trim(v.standard, `"`)
		}
	}
	if want := repository + ":" + chart.App; len(images) != 1 || images[0].Image != want {
		t.Errorf("Artifact Hub is shown %v, the chart runs %s", images, want)
	}
	var links []struct{ URL string }
	if err := yaml.Load([]byte(chart.Annotations["artifacthub.io/links"]), &links); err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		_, path, _ := strings.Cut(l.URL, "/blob/main/")
		if _, err := os.Stat("../" + path); err != nil || path == "" {
			t.Errorf("Artifact Hub links to %s: %v", l.URL, err)
		}
	}
}
