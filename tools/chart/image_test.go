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

// instructions returns the instructions of the last stage of the Dockerfile, comments left out and
// lines joined.
func instructions(t *testing.T) (last [][2]string, all string) {
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
	for l := range strings.SplitSeq(all, "\n") {
		word, rest, _ := strings.Cut(l, " ")
		if word == "FROM" {
			last = nil
		}
		last = append(last, [2]string{word, rest})
	}
	return last, all
}

// TestImageFitsTheChart: the image has the user, the paths and the port that the chart and compose
// count on, and what a program from scratch lacks: certificate authorities, time zones, a directory
// for temporary files.
func TestImageFitsTheChart(t *testing.T) {
	last, all := instructions(t)
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
