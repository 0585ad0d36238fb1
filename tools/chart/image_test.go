package chart

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// instructions returns the instructions of a stage of the Dockerfile, "" being the last one, comments
// left out and lines joined.
func instructions(t *testing.T, stage string) (of [][2]string, all string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for l := range strings.Lines(string(text)) {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "#") {
			lines = append(lines, l)
		}
	}
	all = strings.ReplaceAll(strings.Join(lines, "\n"), "\\\n", "")
	found := false
	for l := range strings.SplitSeq(all, "\n") {
		word, rest, _ := strings.Cut(l, " ")
		if word == "FROM" {
			if found {
				break
			}
			of, found = nil, stage != "" && strings.HasSuffix(rest, " AS "+stage)
		}
		of = append(of, [2]string{word, rest})
	}
	return of, all
}

// TestBulkImage: it has what a launcher and Beam's workers need, and no root.
func TestBulkImage(t *testing.T) {
	stage, all := instructions(t, "bulk")
	one, copied := map[string]string{}, map[string]bool{}
	for _, i := range stage {
		one[i[0]] = i[1]
		if words := strings.Fields(i[1]); i[0] == "COPY" {
			copied[words[len(words)-1]] = true
		}
	}
	for _, want := range []string{"/tmp", "/etc", "/opt", "/replicator-bulk"} {
		if !copied[want] {
			t.Errorf("the image has no %s", want)
		}
	}
	for _, made := range []string{"-o /out/replicator-bulk", "-o /out/opt/beam/boot github.com/apache/beam/sdks/v2/go/container"} {
		if !strings.Contains(all, made) {
			t.Errorf("the build has no %q", made)
		}
	}
	if one["USER"] != "65532:65532" || one["ENTRYPOINT"] != `["/replicator-bulk"]` {
		t.Errorf("user %s, entry point %s", one["USER"], one["ENTRYPOINT"])
	}
}

// TestImageFitsTheChart: the image has the user, the paths and the port that the chart and compose
// count on, and what a program from scratch lacks: certificate authorities, time zones, a directory
// for temporary files.
func TestImageFitsTheChart(t *testing.T) {
	last, all := instructions(t, "")
	one := map[string]string{}
	var copied []string
	for _, i := range last {
		one[i[0]] = i[1]
		if i[0] != "COPY" {
			continue
		}
		words := strings.Fields(i[1])
		from, to := words[len(words)-2], words[len(words)-1]
		copied = append(copied, to)
		if made := strings.Contains(all, from+" ") || strings.Contains(all, path.Dir(from)+"/ "); !made {
			t.Errorf("the build makes no %s", from)
		}
		if (to == "/tmp" || to == "/data") && !slices.Contains(words, "--chown=65532:65532") {
			t.Errorf("%s is not the user's", to)
		}
	}
	for _, want := range []string{"/tmp", "/data", "/etc", "/replicator", strings.TrimPrefix(one["ENV"], "ZONEINFO=")} {
		if !slices.Contains(copied, want) {
			t.Errorf("the image has no %s, only %v", want, copied)
		}
	}
	if one["USER"] != "65532:65532" || one["EXPOSE"] != "9464" || one["ENTRYPOINT"] != `["/replicator"]` {
		t.Errorf("user %s, port %s, entry point %s", one["USER"], one["EXPOSE"], one["ENTRYPOINT"])
	}
	for _, label := range []string{"title", "description", "source", "documentation", "licenses", "version", "revision"} {
		if !strings.Contains(one["LABEL"], "org.opencontainers.image."+label+`="`) {
			t.Errorf("no label %s in %s", label, one["LABEL"])
		}
	}
	for _, arg := range []string{"VERSION", "REVISION"} { // an ARG above FROM, or of another stage, is empty here
		if !slices.Contains(last, [2]string{"ARG", arg + `=""`}) {
			t.Errorf("the last stage does not declare %s", arg)
		}
	}
}
