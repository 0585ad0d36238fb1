package config

import "github.com/tailrace-cdc/replicator/problem/yamlfile"

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
