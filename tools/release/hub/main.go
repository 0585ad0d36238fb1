// Command hub pushes the file that tells Artifact Hub who owns a chart's repository:
//
//	go run ./hub FILE REPOSITORY
//
// The file becomes the artifact REPOSITORY:artifacthub.io, with the credentials of docker login.
//
// Source: https://artifacthub.io/docs/topics/repositories/#oci-support
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The tag and the media types by which Artifact Hub finds the file.
const (
	tag        = "artifacthub.io"
	configType = types.MediaType("application/vnd.cncf.artifacthub.config.v1+yaml")
	fileType   = types.MediaType("application/vnd.cncf.artifacthub.repository-metadata.layer.v1.yaml")
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("hub: ")
	if err := run(context.Background(), os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: hub FILE REPOSITORY")
	}
	content, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	image := mutate.MediaType(mutate.ConfigMediaType(empty.Image, configType), types.OCIManifestSchema1)
	image, err = mutate.Append(image, mutate.Addendum{
		Layer:       static.NewLayer(content, fileType),
		Annotations: map[string]string{"org.opencontainers.image.title": "artifacthub-repo.yml"},
	})
	if err != nil {
		return fmt.Errorf("make artifact: %w", err)
	}
	ref, err := name.NewTag(args[1] + ":" + tag)
	if err != nil {
		return fmt.Errorf("read reference: %w", err)
	}
	err = remote.Write(ref, image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return fmt.Errorf("push %s: %w", ref, err)
	}
	log.Printf("pushed %s", ref)
	return nil
}
