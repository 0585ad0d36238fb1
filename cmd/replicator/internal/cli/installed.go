package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/problem"
)

// The files of a packaged installation, and its user: deploy/linux/tailrace.service has the same
// three.
const (
	installedConfig      = "/etc/tailrace/tailrace.yaml"
	installedEnvironment = "/etc/tailrace/environment"
	installedUser        = "tailrace"
)

// ConfigFile returns the configuration file of a command without --config: $TAILRACE_CONFIG,
// ./tailrace.yaml, or where there is none the file of a package or of the container image.
func ConfigFile() string {
	return configFile(os.Getenv("TAILRACE_CONFIG"), "./tailrace.yaml", installedConfig)
}

func configFile(chosen, here, installed string) string {
	if chosen != "" {
		return chosen
	}
	if _, err := os.Stat(here); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(installed); err == nil {
			return installed
		}
	}
	return here
}

// Load reads the configuration file as config.Load does. For the file of a package it first makes
// the process what the service is: with the variables of its environment file, if that can be
// read, and for root as its user.
func (a *App) Load() (*config.Config, []problem.Problem, error) {
	if path, err := filepath.Abs(a.ConfigPath); err != nil || path != installedConfig {
		return config.Load(a.ConfigPath)
	}
	unread := readEnvironment(installedEnvironment)
	if unread != nil && !errors.Is(unread, fs.ErrPermission) {
		return nil, nil, unread
	}
	// What root makes beside the log, the service cannot write afterwards.
	if err := becomeUser(installedUser); err != nil {
		return nil, nil, fmt.Errorf("go on as the user %s: %w", installedUser, err)
	}
	cfg, problems, err := config.Load(a.ConfigPath)
	if unread != nil {
		askForRoot(problems)
	}
	return cfg, problems, err
}

// askForRoot changes the hint of variables that are not set: the environment file may have them,
// and cannot be read.
func askForRoot(problems []problem.Problem) {
	for i := range problems {
		if problems[i].Code == "unset" {
			problems[i].Hint = "run it with sudo: only root may read " + installedEnvironment
		}
	}
}

// readEnvironment sets the variables of an environment file that are not set. Without the file it
// does nothing.
func readEnvironment(path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read environment: %w", err)
	}
	for name, value := range variables(string(text)) {
		if _, set := os.LookupEnv(name); set {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("set %s of %s: %w", name, path, err)
		}
	}
	return nil
}

var assignment = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)=(.*)$`)

// variables returns the variables of an EnvironmentFile of systemd, one on each line, the last one
// of a name. A value may be quoted; nothing in it is expanded. Lines that are no assignment are
// ignored, as systemd ignores them.
//
// Source: https://www.freedesktop.org/software/systemd/man/latest/systemd.exec.html#EnvironmentFile=
func variables(text string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(text) {
		m := assignment.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		found[m[1]] = unquoted(strings.TrimSpace(m[2]))
	}
	return found
}

// unescaped are the characters that keep no backslash between double quotes.
var unescaped = strings.NewReplacer(`\"`, `"`, `\\`, `\`, "\\`", "`", `\$`, `$`)

func unquoted(value string) string {
	if len(value) < 2 || value[0] != value[len(value)-1] {
		return value
	}
	switch inner := value[1 : len(value)-1]; value[0] {
	case '\'':
		return inner
	case '"':
		return unescaped.Replace(inner)
	}
	return value
}
