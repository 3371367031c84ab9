// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"path/filepath"
	"strings"

	"karpenter/sandbox/component"
)

const (
	loopback       = "127.0.0.1"
	serviceRange   = "10.96.0.0/16"
	firstServiceIP = "10.96.0.1"
)

// layout has the folders and the ports of one cluster.
type layout struct {
	dir     string
	logDir  string
	ports   ports
	pki     *pki
	options Options
}

func (l *layout) kubeconfig() string { return filepath.Join(l.dir, "kubeconfig") }

func (l *layout) componentKubeconfig(name string) string {
	return filepath.Join(l.pki.dir, name+".kubeconfig")
}

func (l *layout) etcdURL() string { return fmt.Sprintf("http://%s:%d", loopback, l.ports.EtcdClient) }

// arguments returns the command line of a component, its subcommand first.
func (l *layout) arguments(name string) []string {
	var args []string
	switch name {
	case component.Etcd:
		args = l.etcdArguments()
	case component.APIServer:
		args = l.apiServerArguments()
	case component.Scheduler:
		args = l.clientArguments(name)
	case component.ControllerManager:
		args = append(l.clientArguments(name), l.controllerManagerArguments()...)
	case Kubelets:
		args = append([]string{"--kubeconfig=" + l.componentKubeconfig(name)}, l.options.Kubelets.Arguments()...)
	}
	args = append([]string{name}, args...)
	if name != component.Etcd && name != Kubelets {
		args = append(args, fmt.Sprintf("--v=%d", l.options.Verbosity))
	}
	return append(args, l.options.ExtraArgs[name]...)
}

// etcdArguments: no fsync, since a sandbox may lose its last second to a power cut; short timeouts, since a lone member
// otherwise waits a second to elect itself.
func (l *layout) etcdArguments() []string {
	peer := fmt.Sprintf("http://%s:%d", loopback, l.ports.EtcdPeer)
	return []string{
		"--name=default",
		"--data-dir=" + filepath.Join(l.dir, "etcd"),
		"--listen-client-urls=" + l.etcdURL(),
		"--advertise-client-urls=" + l.etcdURL(),
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
		"--unsafe-no-fsync",
		"--heartbeat-interval=10",
		"--election-timeout=100",
		"--quota-backend-bytes=4294967296",
		"--max-request-bytes=8388608",
		"--log-level=warn",
	}
}

// apiServerArguments: loopback cannot be the endpoint of the kubernetes service, hence no reconciler; fairness queues off
// and limits raised, since all clients are ours; without send-retry-after a stop waits up to a minute for open watches.
func (l *layout) apiServerArguments() []string {
	return []string{
		"--etcd-servers=" + l.etcdURL(),
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", l.ports.API),
		"--endpoint-reconciler-type=none",
		"--tls-cert-file=" + l.pki.servingCert(),
		"--tls-private-key-file=" + l.pki.servingKey(),
		"--client-ca-file=" + l.pki.caPath(),
		"--authorization-mode=Node,RBAC",
		"--enable-bootstrap-token-auth=true",
		"--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + l.pki.serviceAccount(),
		"--service-account-signing-key-file=" + l.pki.serviceAccount(),
		"--service-cluster-ip-range=" + serviceRange,
		"--enable-priority-and-fairness=false",
		"--max-requests-inflight=2000",
		"--max-mutating-requests-inflight=1000",
		"--delete-collection-workers=16",
		"--shutdown-send-retry-after=true",
		"--event-ttl=15m",
		"--profiling=false",
	}
}

// clientArguments are those that kube-scheduler and kube-controller-manager share.
func (l *layout) clientArguments(name string) []string {
	return []string{
		"--kubeconfig=" + l.componentKubeconfig(name),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=5000",
		"--kube-api-burst=10000",
		"--kube-api-content-type=application/vnd.kubernetes.protobuf",
		"--profiling=false",
	}
}

func (l *layout) controllerManagerArguments() []string {
	return []string{
		"--controllers=" + strings.Join(controllers(), ","),
		"--controller-start-interval=0s",
		"--node-monitor-grace-period=50s",
		"--root-ca-file=" + l.pki.caPath(),
		"--cluster-signing-cert-file=" + l.pki.caPath(),
		"--cluster-signing-key-file=" + l.pki.caKey(),
		"--service-account-private-key-file=" + l.pki.serviceAccount(),
		"--service-cluster-ip-range=" + serviceRange,
	}
}

// controllers lists the controllers that are useful without real instances and
// cloud routes.
func controllers() []string {
	return []string{
		"serviceaccount-controller", "serviceaccount-token-controller", "root-ca-certificate-publisher-controller",
		"namespace-controller", "garbage-collector-controller", "pod-garbage-collector-controller",
		"deployment-controller", "replicaset-controller", "replicationcontroller-controller", "statefulset-controller",
		"daemonset-controller", "job-controller", "cronjob-controller", "ttl-after-finished-controller",
		"disruption-controller", "endpoints-controller", "endpointslice-controller",
		"persistentvolume-binder-controller", "persistentvolume-protection-controller",
		"persistentvolumeclaim-protection-controller", "ephemeral-volume-controller",
		"resourceclaim-controller", "device-taint-eviction-controller",
		"node-lifecycle-controller", "taint-eviction-controller",
		"clusterrole-aggregation-controller", "resourcequota-controller",
		"certificatesigningrequest-approving-controller", "certificatesigningrequest-signing-controller",
	}
}
