package main

import (
	"archive/tar"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// refName is the annotation with the tag of an image in a layout: podman and skopeo show it.
const refName = "org.opencontainers.image.ref.name"

func main() {
	log.SetFlags(0)
	log.SetPrefix("image: ")
	if err := run(context.Background(), os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

// run makes the image that the arguments describe, or pushes one that was made.
func run(ctx context.Context, args []string) error {
	if len(args) == 3 && args[0] == "push" {
		return push(ctx, args[1], args[2])
	}
	var o Options
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	programs := flags.String("programs", "", "directory with the programs linux-amd64 and linux-arm64")
	boot := flags.String("boot", "", "for replicator-bulk: directory with Beam's boot program, as linux-amd64 and linux-arm64")
	flags.StringVar(&o.Version, "version", "", "version of the release")
	flags.StringVar(&o.Revision, "revision", "", "commit of the release")
	epoch := flags.Int64("time", 0, "seconds since 1970: the commit's time, which all files get")
	flags.StringVar(&o.Licenses, "licenses", "", "directory with LICENSE and THIRD-PARTY-NOTICES.txt")
	flags.StringVar(&o.Zones, "zones", "", "zoneinfo.zip of the Go distribution")
	out := flags.String("out", "", "directory of the OCI layout; the tar file gets its name with .tar")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o.Time = time.Unix(*epoch, 0).UTC()
	o.Programs = perProcessor(*programs)
	if *boot != "" {
		o.Boot = perProcessor(*boot)
	}
	index, err := Index(o)
	if err != nil {
		return err
	}
	if err := write(index, *out, o); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	log.Printf("%s is %s", *out, digest)
	return nil
}

// perProcessor returns the files of a directory by processor.
func perProcessor(dir string) map[string]string {
	files := map[string]string{}
	for _, arch := range []string{"amd64", "arm64"} {
		files[arch] = filepath.Join(dir, "linux-"+arch)
	}
	return files
}

// write writes the layout anew, and the tar file of it.
func write(index v1.ImageIndex, dir string, o Options) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("make layout: %w", err)
	}
	err = l.ReplaceIndex(index, match.Name(o.Version), layout.WithAnnotations(map[string]string{refName: o.Version}))
	if err != nil {
		return fmt.Errorf("write layout: %w", err)
	}
	return pack(dir, dir+".tar", o.Time)
}

// pack writes the files of a directory into a tar file, in order and all with one time: the same
// bytes each time.
func pack(dir, file string, at time.Time) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := tar.NewWriter(f)
	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return err
		}
		h := &tar.Header{Name: path, Mode: 0o644, Size: int64(len(content)), ModTime: at, Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return w.Close()
}

// push pushes the index of a layout to a repository, tagged with its version, with the credentials
// of docker login.
func push(ctx context.Context, dir, repository string) error {
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return fmt.Errorf("open layout: %w", err)
	}
	list, err := top.IndexManifest()
	if err != nil {
		return fmt.Errorf("read layout: %w", err)
	}
	if len(list.Manifests) != 1 {
		return fmt.Errorf("%s has %d images, not one", dir, len(list.Manifests))
	}
	index, err := top.ImageIndex(list.Manifests[0].Digest)
	if err != nil {
		return fmt.Errorf("read layout: %w", err)
	}
	ref, err := name.ParseReference(repository + ":" + list.Manifests[0].Annotations[refName])
	if err != nil {
		return fmt.Errorf("read reference: %w", err)
	}
	err = remote.WriteIndex(ref, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return fmt.Errorf("push %s: %w", ref, err)
	}
	log.Printf("pushed %s@%s", ref, list.Manifests[0].Digest)
	return nil
}
