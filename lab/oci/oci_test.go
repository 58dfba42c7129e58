package main

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// A reader of others' takes the layout, every digest fits, and the program in it runs; a second image is the same.
func TestLayout(t *testing.T) {
	t.Chdir("../..")
	dir := t.TempDir()
	arch := filepath.Join(dir, "build", runtime.GOARCH)
	build := exec.Command(".ci/go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.release=1.2.3 -X main.revision=abc", "-o", filepath.Join(arch, "xdpmon"), "./cmd/xdpmon")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var digests []v1.Hash
	for _, name := range []string{"a", "b"} {
		out := filepath.Join(dir, name)
		o := options{out: out, name: "xdpmon", version: "1.2.3", revision: "abc", created: time.Unix(1790000000, 0).UTC(), binaries: []binary{{runtime.GOARCH, filepath.Join(arch, "xdpmon")}}}
		if err := write(o); err != nil {
			t.Fatal(err)
		}
		index, err := layout.ImageIndexFromPath(out)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(index); err != nil {
			t.Fatal(err)
		}
		digest, err := index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest)
	}
	if digests[0] != digests[1] {
		t.Errorf("two images of the same files differ: %v", digests)
	}
	image := ours(t, filepath.Join(dir, "a"))
	config, err := image.ConfigFile()
	if err != nil || strings.Join(config.Config.Entrypoint, " ")+" "+strings.Join(config.Config.Cmd, " ") != "/usr/bin/xdpmon agent --config /etc/xdpmon/agent.yaml" {
		t.Errorf("%v, %+v", err, config)
	}
	root := filepath.Join(dir, "root")
	unpack(t, image, root)
	if out, err := exec.Command(filepath.Join(root, "usr/bin/xdpmon"), "version").CombinedOutput(); err != nil || !strings.Contains(string(out), "xdpmon 1.2.3-abc") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := exec.Command(filepath.Join(root, "usr/bin/xdpmon"), "agent", "--check", "--config", filepath.Join(root, "etc/xdpmon/agent.yaml")).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// ours is the image of this machine's architecture, below the index that bears the version.
func ours(t *testing.T, dir string) v1.Image {
	t.Helper()
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	outer, err := index.IndexManifest()
	if err != nil || len(outer.Manifests) != 1 || outer.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "1.2.3" {
		t.Fatalf("%v, %+v", err, outer)
	}
	inner, err := index.ImageIndex(outer.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	list, err := inner.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Manifests {
		if m.Platform.Architecture == runtime.GOARCH {
			image, err := inner.Image(m.Digest)
			if err != nil {
				t.Fatal(err)
			}
			return image
		}
	}
	t.Fatalf("no image for %s: %+v", runtime.GOARCH, list)
	return nil
}

func unpack(t *testing.T, image v1.Image, root string) {
	t.Helper()
	r := mutate.Extract(image)
	defer r.Close()
	for files := tar.NewReader(r); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, h.Name)
		if h.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, os.FileMode(h.Mode))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(f, files); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
