// SPDX-License-Identifier: Apache-2.0

package bootstrap

import "strings"

// pauseImage is the container that holds a pod's namespaces.
const pauseImage = registry + "/oss/kubernetes/pause:3.6"

// containerd returns the configuration of containerd. Nodes whose GPU driver is
// installed run containers with NVIDIA's runtime.
func containerd(gpu bool) string {
	name, binary := "runc", "/usr/bin/runc"
	if gpu {
		name, binary = "nvidia-container-runtime", "/usr/bin/nvidia-container-runtime"
	}
	return strings.NewReplacer("PAUSE", pauseImage, "RUNTIME", name, "BINARY", binary).Replace(`version = 2
oom_score = -999
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "PAUSE"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "RUNTIME"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.RUNTIME]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.RUNTIME.options]
        BinaryName = "BINARY"
        SystemdCgroup = true
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.untrusted]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.untrusted.options]
        BinaryName = "BINARY"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "/etc/containerd/certs.d"
  [plugins."io.containerd.grpc.v1.cri".registry.headers]
    X-Meta-Source-Client = ["azure/aks"]
[metrics]
  address = "0.0.0.0:10257"
`)
}
