package config

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/host"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/problem/yamlfile"
)

// report reads the file and collects what is wrong with it.
type report struct{ yamlfile.Reader }

func newReport() *report {
	return &report{yamlfile.Reader{
		KindCode: "bad_value", ValueCode: "bad_value", Example: "compare with tailrace.example.yaml", Merge: true,
	}}
}

// fault adds an error about the key at path, written or not.
func (r *report) fault(code, path, hint, what string, args ...any) {
	r.Errorf(r.At(path), code, hint, what, args...)
}

// warn adds a warning about the key at path.
func (r *report) warn(code, path, hint, what string, args ...any) {
	r.Warnf(r.At(path), code, hint, what, args...)
}

// reported returns whether the decoder has already reported this value or a block around it: one
// problem is enough.
func (r *report) reported(path string) bool {
	return slices.ContainsFunc(r.List, func(p problem.Problem) bool {
		return p.Path == path || p.Path != "" && strings.HasPrefix(path, p.Path+".") && p.Code == "bad_value"
	})
}

// name reports a value that is missing or does not fit the pattern; rule states the pattern for the
// author.
func (r *report) name(path, value string, pattern *regexp.Regexp, rule string) {
	switch {
	case r.reported(path):
	case value == "":
		r.fault("missing", path, rule, "%s is required", path)
	case !pattern.MatchString(value):
		r.fault("bad_value", path, rule, "%q is not a possible value", value)
	}
}

// oneOf reports a value that is not one of the words.
func (r *report) oneOf(path, v string, words ...string) {
	if !slices.Contains(words, v) && !r.reported(path) {
		r.fault("bad_value", path, strings.Join(words, " or "), "%q is not a possible value", v)
	}
}

// positive reports a duration that is not longer than zero.
func (r *report) positive(path string, d Duration) {
	if d <= 0 && !r.reported(path) {
		r.fault("bad_value", path, "for example 10s", "%s must be longer than zero, not %s", path, d)
	}
}

// atLeast reports sizes below least as errors, and those below wise as warnings.
func (r *report) atLeast(path string, v, least, wise Size, why string) {
	switch {
	case r.reported(path):
	case v < least:
		r.fault("bad_value", path, fmt.Sprintf("at least %s", least), "%s is too small: %s", v, why)
	case v < wise:
		r.warn("small", path, fmt.Sprintf("%s or more outside of tests", wise), "%s is small: %s", v, why)
	}
}

// listen reports a value that is not host:port.
func (r *report) listen(path, value string) {
	if r.reported(path) {
		return
	}
	_, port, err := net.SplitHostPort(value)
	n, convErr := strconv.Atoi(port)
	if err != nil || convErr != nil || n < 0 || n > 65535 || strings.Contains(value, "@") {
		r.fault("bad_value", path, "host:port, for example 127.0.0.1:9464", "%q is not an address", host.WithoutUser(value))
	}
}

// endpoint reports a value that is neither empty nor an HTTP URL.
func (r *report) endpoint(path, value string) {
	if value == "" || r.reported(path) {
		return
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		r.fault("bad_value", path, "for example http://127.0.0.1:8000", "%q is not an http or https URL",
			host.WithoutUser(value))
	}
}
