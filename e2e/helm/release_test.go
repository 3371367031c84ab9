// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestRelease installs a release as its users do: Helm pulls the charts from a
// registry, and the controller runs from the file system of the image in that
// registry, as the image's user, and can write nothing. Nodes come and go.
func TestRelease(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can start a program in another file system as another user")
	}
	i := begin(t)
	registry, version := i.registry()
	chart := func(name string) []string {
		return []string{"upgrade", "--install", name, "oci://" + registry + "/charts/" + name, "--version", version, "--plain-http", "--wait", "--timeout", "3m"}
	}
	i.helm(chart("karpenter-crd")...)
	i.helm(append(chart("karpenter"), "--set", "settings.cloudProvider=kwok",
		"--set", "controller.resources.requests.cpu=1", "--set", "controller.resources.limits.memory=1Gi",
		"--set", "controller.image.repository="+registry+"/karpenter/controller",
		"--set", fmt.Sprint("controller.metrics.port=", freePort(t)), "--set", fmt.Sprint("controller.healthProbe.port=", freePort(t)))...)
	pod := i.pod()
	container := pod.Spec.Containers[0]
	if want := registry + "/karpenter/controller:" + version; container.Image != want {
		t.Errorf("the chart runs the image %s, want %s", container.Image, want)
	}
	if s := container.SecurityContext; s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
		t.Errorf("the chart lets the container write to its root: %+v", s)
	}

	root := filepath.Join(t.TempDir(), "root")
	if out, err := exec.CommandContext(t.Context(), "../../bin/release-tool", "unpack", "--plain-http", container.Image, root).CombinedOutput(); err != nil {
		t.Fatalf("unpack the image: %v\n%s", err, out)
	}
	const kubeconfig = "/var/run/secrets/kubeconfig"
	i.mount(filepath.Join(root, kubeconfig), i.kubeconfig(pod))
	env := []string{"DISABLE_LEADER_ELECTION=false"}
	for _, v := range container.Env {
		env = append(env, v.Name+"="+i.value(pod, &container, v))
	}
	// The steps of a container runtime: a file system of its own that cannot be written to, then the user.
	const steps = `mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && ! touch "$1/written" 2>/dev/null && exec chroot --userspec=65532:65532 "$1" /karpenter controller`
	program := i.StartCommand(t, exec.Command("unshare", "--mount", "sh", "-c", steps, "sh", root), append(env, "KUBECONFIG="+kubeconfig, withoutStreams)...)
	v := i.Watch(t)
	i.leads("")
	manifest, err := os.ReadFile("testdata/release.yaml")
	if err != nil {
		t.Fatal(err)
	}
	i.Apply(t, string(manifest))
	v.Until("the pod runs", patience, running(v, "released", 1))
	i.scale("released", 0)
	v.Until("its node is gone", patience, func() string { return left(v) })
	i.remove("karpenter.sh/v1", "NodePool", "release")
	i.remove("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass", "release")
	program.Stop()
	i.uninstall()
}

// registry builds the release for this machine and serves it in a registry, and
// returns its address and the version.
func (i *installation) registry() (address, version string) {
	i.Helper()
	folder := i.TempDir()
	c := exec.CommandContext(i.Context(), "../../bin/release-tool", "build", "--source", "../..", "--out", folder, "--platforms", "linux/"+runtime.GOARCH)
	if out, err := c.CombinedOutput(); err != nil {
		i.Fatalf("build the release: %v\n%s", err, out)
	}
	server := exec.CommandContext(i.Context(), "../../bin/release-tool", "serve", "--from", folder)
	out, err := server.StdoutPipe()
	if err != nil {
		i.Fatal(err)
	}
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		i.Fatal(err)
	}
	i.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, after, found := strings.Cut(lines.Text(), "--version "); found {
			version = after
		}
		if at, found := strings.CutPrefix(lines.Text(), "serving "); found {
			return at, version
		}
	}
	i.Fatal("the registry ended before it served")
	return "", ""
}

// mount copies a kubeconfig to where a container sees it, readable to its user, as
// the kubelet mounts the files of a service account.
func (i *installation) mount(to, from string) {
	i.Helper()
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		i.Fatal(err)
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil { // files of this machine are not seen in there
		i.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		i.Fatal(err)
	}
	if err := clientcmd.WriteToFile(*config, to); err != nil {
		i.Fatal(err)
	}
	if err := os.Chmod(to, 0o444); err != nil {
		i.Fatal(err)
	}
}
