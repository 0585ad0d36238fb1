package host

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Processors returns how many processors this process has: fewer than it runs goroutines on where
// its control group has a lower limit. Go rounds such a limit up, and never runs on fewer than two:
// https://pkg.go.dev/runtime#GOMAXPROCS
func Processors() float64 {
	text, _ := os.ReadFile("/sys/fs/cgroup/cpu.max") // without one there is no limit
	return processorsOf(float64(runtime.GOMAXPROCS(0)), string(text))
}

// processorsOf returns the lower of procs and a limit in the form of cpu.max: microseconds of CPU
// time, or max, in a period of so many. Source:
// https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu-interface-files
func processorsOf(procs float64, limit string) float64 {
	quota, period, _ := strings.Cut(strings.TrimSpace(limit), " ")
	of, err := strconv.ParseFloat(quota, 64)
	per, errPeriod := strconv.ParseFloat(period, 64)
	if err != nil || errPeriod != nil || of <= 0 || per <= 0 {
		return procs
	}
	return min(procs, of/per)
}
