package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/problem"
)

// TestFileOfAPackageIsTheLastChoice: a file that the user chose, or has in the directory, comes
// before that of an installation.
func TestFileOfAPackageIsTheLastChoice(t *testing.T) {
	dir := t.TempDir()
	here, installed := filepath.Join(dir, "tailrace.yaml"), filepath.Join(dir, "etc.yaml")
	is := func(chosen, want string) {
		t.Helper()
		if got := configFile(chosen, here, installed); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	is("", here) // its error names the file that the user may have meant
	write(t, installed, "")
	is("", installed)
	is("other.yaml", "other.yaml")
	write(t, here, "")
	is("", here)
}

// TestVariablesAreThoseOfSystemd: the service reads the same file.
func TestVariablesAreThoseOfSystemd(t *testing.T) {
	const text = "# a comment\n; another\n\nNATS_URL=nats://a:b@host:4222\n  KEY = no\nA=1\nA=2\nEMPTY=\n" +
		"SPACES= x y \r\nSINGLE='$HOME \"q\" '\nDOUBLE=\"a \\\"b\\\" \\\\ \\$c ${D}\"\n" +
		"HASH=a#b\nEQUALS=a=b=\nHALF=\"x\nnothing\n"
	want := map[string]string{
		"NATS_URL": "nats://a:b@host:4222", "A": "2", "EMPTY": "", "SPACES": "x y", "SINGLE": `$HOME "q" `,
		"DOUBLE": `a "b" \ $c ${D}`, "HASH": "a#b", "EQUALS": "a=b=", "HALF": `"x`,
	}
	if diff := cmp.Diff(want, variables(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUnreadableEnvironmentAsksForRoot: only for what the file may have.
func TestUnreadableEnvironmentAsksForRoot(t *testing.T) {
	problems := []problem.Problem{{Code: "unset", Hint: "set it"}, {Code: "unknown", Hint: "spell it"}}
	askForRoot(problems)
	want := []problem.Problem{
		{Code: "unset", Hint: "run it with sudo: only root may read /etc/tailrace/environment"},
		{Code: "unknown", Hint: "spell it"},
	}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEnvironmentOfTheCallerComesFirst: and a file that is not there changes nothing.
func TestEnvironmentOfTheCallerComesFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "environment")
	if err := readEnvironment(path); err != nil {
		t.Error(err)
	}
	t.Setenv("TAILRACE_TEST_SET", "mine")
	t.Setenv("TAILRACE_TEST_NEW", "") // so that it is taken back
	if err := os.Unsetenv("TAILRACE_TEST_NEW"); err != nil {
		t.Fatal(err)
	}
	write(t, path, "TAILRACE_TEST_SET=file\nTAILRACE_TEST_NEW=file\n")
	if err := readEnvironment(path); err != nil {
		t.Error(err)
	}
	if set, added := os.Getenv("TAILRACE_TEST_SET"), os.Getenv("TAILRACE_TEST_NEW"); set != "mine" || added != "file" {
		t.Errorf("%q, %q", set, added)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestInstallationIsThatOfTheUnit: the unit, the packages and the commands name the same files and
// the same user.
func TestInstallationIsThatOfTheUnit(t *testing.T) {
	unit, err := os.ReadFile("../../../../deploy/linux/tailrace.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"User=" + installedUser, "ExecStart=/usr/bin/replicator run --config " + installedConfig,
		"EnvironmentFile=-" + installedEnvironment,
	} {
		if !strings.Contains(string(unit), "\n"+line+"\n") {
			t.Errorf("the unit has no line %q", line)
		}
	}
}
