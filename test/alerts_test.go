package test

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

// alertRule is a rule of deploy/alerts.yaml. All of them have the form AGG by (LABELS)
// ([rate(]METRIC[ - OTHER][{LABEL!~"VALUES"}][[5m])]) OP NUMBER [or absent(METRIC)].
type alertRule struct {
	name, agg      string
	by             []string
	metric, minus  string
	label, without string
	rate           bool
	op             string
	limit          float64
	absent         bool
}

var alertExpr = regexp.MustCompile(`^(max|min|sum) by \(([\w, ]+)\) ` +
	`\((rate\()?(\w+)(?:\{(\w+)!~"([^"]+)"\}\[\d+m\]\))?(?: - (\w+))?\) ` +
	`(<|>|==) ([\d *.]+)( or absent\(\w+\))?$`)

// alertRules parses the rules of deploy/alerts.yaml.
func alertRules(t *testing.T) (rules []alertRule) {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Load([]byte(read(t, "../deploy/alerts.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			m := alertExpr.FindStringSubmatch(strings.TrimSpace(r.Expr))
			if m == nil {
				t.Fatalf("alert %s: this test cannot read its expression: %s", r.Alert, r.Expr)
			}
			limit := 1.0
			for _, factor := range strings.Split(m[9], "*") {
				f, err := strconv.ParseFloat(strings.TrimSpace(factor), 64)
				if err != nil {
					t.Fatalf("alert %s: %v", r.Alert, err)
				}
				limit *= f
			}
			rules = append(rules, alertRule{
				name: r.Alert, agg: m[1], by: strings.Split(m[2], ", "), rate: m[3] != "", metric: m[4],
				label: m[5], without: m[6], minus: m[7], op: m[8], limit: limit, absent: m[10] != "",
			})
		}
	}
	return rules
}

// series is a time series that was scraped twice.
type series struct {
	labels map[string]string
	first  float64
	slope  float64 // growth per second
}

// capture holds the series of two scrapes of a replicator, by metric.
type capture map[string][]series

// scrape returns the metrics of a daemon by name and labels, none when it does not answer.
func (d *daemon) scrape() map[string]map[string]float64 {
	all := map[string]map[string]float64{}
	code, body := d.get("/metrics")
	if code != 200 {
		return all
	}
	for _, line := range strings.Split(string(body), "\n") {
		m := sample.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			d.w.t.Fatal(err)
		}
		if all[m[1]] == nil {
			all[m[1]] = map[string]float64{}
		}
		all[m[1]][m[2]] = v
	}
	return all
}

// sample matches one line of the metrics' text format.
var sample = regexp.MustCompile(`^(tailrace_\w+)(?:\{(.*)\})? (\S+)$`)

var labelPair = regexp.MustCompile(`(\w+)="([^"]*)"`)

// capture scrapes twice, some seconds apart, to measure the growth of each series.
func (d *daemon) capture() capture {
	d.w.t.Helper()
	began, first := time.Now(), d.scrape()
	timer := time.NewTimer(3 * time.Second) // the interval of the two scrapes
	defer timer.Stop()
	<-timer.C
	second, took := d.scrape(), time.Since(began).Seconds()
	c := capture{}
	for name, all := range second {
		for labels, v := range all {
			s := series{labels: map[string]string{}, first: v}
			if before, ok := first[name][labels]; ok {
				s.slope = trend(name, (v-before)/took)
			}
			for _, pair := range labelPair.FindAllStringSubmatch(labels, -1) {
				s.labels[pair[1]] = pair[2]
			}
			c[name] = append(c[name], s)
		}
	}
	return c
}

// trend returns the growth per second to extrapolate a series with: the measured one for a counter,
// one or zero for an age, zero for every other metric.
func trend(metric string, seen float64) float64 {
	switch {
	case strings.HasSuffix(metric, "_total"):
		return seen
	case strings.HasSuffix(metric, "_seconds") && math.Abs(seen) > 0.8:
		return math.Round(seen)
	}
	return 0
}

// fires evaluates a rule on the captured series, extrapolated by after.
func (r *alertRule) fires(c capture, after time.Duration) bool {
	if len(c[r.metric]) == 0 {
		return r.absent
	}
	groups := map[string]float64{}
	other := regexp.MustCompile("^(" + r.without + ")$")
	for _, s := range c[r.metric] {
		if r.label != "" && other.MatchString(s.labels[r.label]) {
			continue
		}
		v := s.first + s.slope*after.Seconds()
		if r.rate {
			v = s.slope
		}
		if r.minus != "" {
			for _, m := range c[r.minus] {
				if maps.Equal(m.labels, s.labels) {
					v -= m.first + m.slope*after.Seconds()
				}
			}
		}
		var key []string
		for _, l := range r.by {
			key = append(key, s.labels[l])
		}
		group := strings.Join(key, ",")
		have, known := groups[group]
		switch {
		case !known:
			groups[group] = v
		case r.agg == "sum":
			groups[group] = have + v
		case r.agg == "max":
			groups[group] = math.Max(have, v)
		default:
			groups[group] = math.Min(have, v)
		}
	}
	for _, v := range groups {
		if r.op == "<" && v < r.limit || r.op == ">" && v > r.limit || r.op == "==" && v == r.limit {
			return true
		}
	}
	return false
}

// firing returns the names of the alerts that fire when the captured trends go on for half an hour.
func firing(rules []alertRule, c capture) (names []string) {
	for i := range rules {
		if rules[i].fires(c, 30*time.Minute) {
			names = append(names, rules[i].name)
		}
	}
	slices.Sort(names)
	return names
}

// promtool returns a capture as a test of promtool: its series as input, and the alerts that must
// fire.
func (c capture) promtool(name string, rules []alertRule, alerts []string) string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "- name: %q\n  interval: 1m\n  input_series:\n", name)
	used := map[string]bool{}
	for _, r := range rules {
		used[r.metric], used[r.minus] = true, true
	}
	lines := 0
	for _, metric := range slices.Sorted(maps.Keys(c)) {
		if !used[metric] {
			continue
		}
		all := slices.Clone(c[metric])
		slices.SortFunc(all, func(a, b series) int { return strings.Compare(fmt.Sprint(a.labels), fmt.Sprint(b.labels)) })
		for _, s := range all {
			labels := []string{`job="tailrace"`, `instance="a"`}
			for _, l := range slices.Sorted(maps.Keys(s.labels)) {
				labels = append(labels, fmt.Sprintf("%s=%q", l, s.labels[l]))
			}
			minute := math.Round(s.slope * 60)
			if strings.HasSuffix(metric, "_total") && s.first == 0 && minute == 0 {
				continue // never counted
			}
			first := strconv.FormatFloat(round(s.first), 'f', -1, 64)
			fmt.Fprintf(b, "  - {series: '%s{%s}', values: '%s%+.0fx45'}\n", metric, strings.Join(labels, ","), first, minute)
			lines++
		}
	}
	if lines == 0 { // promtool needs at least one
		fmt.Fprintf(b, "  - {series: 'up{job=\"tailrace\",instance=\"a\"}', values: '0x45'}\n")
	}
	fmt.Fprintf(b, "  promql_expr_test:\n  - expr: group by (alertname) (ALERTS{alertstate=\"firing\"})\n"+
		"    eval_time: 40m\n    exp_samples:")
	if len(alerts) == 0 {
		b.WriteString(" []")
	}
	b.WriteString("\n")
	for _, a := range alerts {
		fmt.Fprintf(b, "    - {labels: '{alertname=%q}', value: 1}\n", a)
	}
	return b.String()
}

// round keeps three digits, so that the file of captures is readable.
func round(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return v
	}
	scale := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(v))))
	if scale >= 1 {
		return math.Round(v*scale) / scale
	}
	return math.Round(v)
}
