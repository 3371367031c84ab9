// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/azure/v1beta1"
	"karpenter/e2e/harness"
)

// rights are what the chart gives to those who come with a token of Karpenter's.
const rights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: karpenter-node-bootstrap}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:node-bootstrapper"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:bootstrappers:karpenter"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: karpenter-node-approve}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:certificates.k8s.io:certificatesigningrequests:nodeclient"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:bootstrappers:karpenter"}]
`

// TestOwnVirtualMachines covers spec 71/82, the rotation of spec 71/83, and spec 71/87,
// against a real API server: Karpenter makes a bootstrap token and virtual machines; their
// scripts ask the API server for certificates with that token, the controller manager
// approves and signs them, and the kubelets register their Nodes with these. When the token
// has expired, the API server rejects it, Karpenter has another one, and more nodes join
// with that. Nothing shows a token. In the end no virtual machine and no network interface
// is left.
func TestOwnVirtualMachines(t *testing.T) {
	c, err := harness.Start(t.Context(), harness.Options{Kubelets: true, Args: []string{"--pod-stop-delay=1s"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := &scene{t, c, c.StartAzure(t), time.Now()}
	c.Apply(t, rights)
	c.Apply(t, manifest)
	v := c.Watch(t)
	port := harness.FreePort(t)
	k := c.StartController(t, append(s.azure.Environment(), fmt.Sprint("METRICS_PORT=", port),
		"PROVISION_MODE=aksscriptless", "SSH_PUBLIC_KEY=ssh-rsa AAAA", "CLUSTER_ENDPOINT="+c.Config.Host)...)

	v.Until("pods run", patience, s.running(v, 5))
	first := s.nodes(v)
	s.tell("5 pods run", first)
	token := s.token()
	s.bootstrapped(first)
	s.authenticates(token, true)

	s.expire()
	s.authenticates(token, false)
	s.tell("the token has expired, and the API server refuses it", nil)
	v.Until("there is another token", patience, func() string {
		if next := s.token(); next == "" || next == token {
			return "the token is still the same"
		}
		return ""
	})
	next := s.token()
	s.authenticates(next, true)
	s.scale(12)
	v.Until("more pods run", patience, s.running(v, 12))
	more := s.nodes(v)
	if len(more) <= len(first) {
		t.Errorf("%d nodes, and %d before", len(more), len(first))
	}
	s.bootstrapped(more)
	s.tell("12 pods run, on nodes that have joined with another token", more)
	s.hidden(k, port, token, next)

	s.scale(0)
	v.Until("nodes are gone", patience, func() string {
		if n := len(s.nodes(v)); n > 0 {
			return fmt.Sprintf("%d nodes are left", n)
		}
		return ""
	})
	s.delete("NodePool", schema.GroupVersion{Group: "karpenter.sh", Version: "v1"})
	s.delete(v1beta1.Kind, v1beta1.GroupVersion())
	v.Until("nothing is left in Azure", patience, func() string {
		var interfaces []string
		s.azure.Read(s.T, "/_azuresim/interfaces", &interfaces)
		if left := s.machines(); len(left)+len(interfaces) > 0 {
			return fmt.Sprintf("virtual machines %v, network interfaces %q", left, interfaces)
		}
		return ""
	})
	s.tell("nothing is left in Azure", nil)
	calls := map[string]int{}
	s.azure.Read(t, "/_azuresim/calls", &calls)
	t.Logf("calls: %v", calls)
}

// secrets are those of Karpenter's tokens.
func (s *scene) secrets() []corev1.Secret {
	s.Helper()
	list := &corev1.SecretList{}
	if err := s.Client.List(s.Context(), list, client.InNamespace("kube-system"), client.MatchingLabels{"karpenter.azure.com/bootstrap-token": "true"}); err != nil {
		s.Fatal(err)
	}
	return list.Items
}

// token returns the token that expires last.
func (s *scene) token() string {
	s.Helper()
	all := s.secrets()
	if len(all) == 0 {
		return ""
	}
	last := slices.MaxFunc(all, func(a, b corev1.Secret) int {
		return strings.Compare(string(a.Data["expiration"]), string(b.Data["expiration"]))
	})
	return string(last.Data["token-id"]) + "." + string(last.Data["token-secret"])
}

// expire has all tokens expire.
func (s *scene) expire() {
	s.Helper()
	for _, secret := range s.secrets() {
		secret.Data["expiration"] = []byte(time.Now().Add(-time.Second).UTC().Format(time.RFC3339))
		if err := s.Client.Update(s.Context(), &secret); err != nil {
			s.Fatal(err)
		}
	}
}

// authenticates requires that the API server takes the token, or does not. It remembers for
// ten seconds whom it has taken, so it is asked for a while, as often as the client's limit
// allows.
func (s *scene) authenticates(token string, want bool) {
	s.Helper()
	with := rest.AnonymousClientConfig(s.Config)
	with.BearerToken, with.QPS, with.Burst = token, 5, 1
	kube, err := kubernetes.NewForConfig(with)
	if err != nil {
		s.Fatal(err)
	}
	for range 300 {
		_, err = kube.CertificatesV1().CertificateSigningRequests().List(s.Context(), metav1.ListOptions{Limit: 1})
		if want && err == nil || !want && apierrors.IsUnauthorized(err) {
			return
		}
	}
	s.Errorf("the API server takes the token: want %v, and it answers %v", want, err)
}

// bootstrapped requires that there is a certificate for every node, which was got by a
// token of Karpenter's. Nothing but that certificate lets azuresim register a node.
func (s *scene) bootstrapped(nodes []corev1.Node) {
	s.Helper()
	kube, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		s.Fatal(err)
	}
	list, err := kube.CertificatesV1().CertificateSigningRequests().List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	signed := 0
	for i := range list.Items {
		r := &list.Items[i]
		if strings.HasPrefix(r.Spec.Username, "system:bootstrap:karpn") && slices.Contains(r.Spec.Groups, "system:bootstrappers:karpenter") && len(r.Status.Certificate) > 0 {
			signed++
		}
	}
	if signed < len(nodes) {
		s.Errorf("%d certificates for %d nodes", signed, len(nodes))
	}
	for _, n := range nodes {
		if !strings.HasPrefix(n.Name, "aks-default-") || n.Labels["kubernetes.azure.com/role"] != "agent" || !strings.HasSuffix(n.Spec.ProviderID, "/virtualMachines/"+n.Name) {
			s.Errorf("node %s: provider ID %s, labels %v", n.Name, n.Spec.ProviderID, n.Labels)
		}
	}
}

// hidden requires that the secret part of no token is in what people read: the log, the
// metrics, and the objects but the tokens' own.
func (s *scene) hidden(k *harness.Controller, port int, tokens ...string) {
	s.Helper()
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", port))
	if err != nil {
		s.Fatal(err)
	}
	defer answer.Body.Close()
	metrics, err := io.ReadAll(answer.Body)
	if err != nil {
		s.Fatal(err)
	}
	shown := map[string]string{"the log": k.Log(), "the metrics": string(metrics)}
	for _, of := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Event"}, {Version: "v1", Kind: "Node"}, {Version: "v1", Kind: "ConfigMap"}, {Group: "karpenter.sh", Version: "v1", Kind: "NodeClaim"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(of)
		if err := s.Client.List(s.Context(), list); err != nil {
			s.Fatal(err)
		}
		text, err := list.MarshalJSON()
		if err != nil || len(list.Items) == 0 {
			s.Fatalf("%d of kind %s, %v", len(list.Items), of.Kind, err)
		}
		shown["objects of kind "+of.Kind] = string(text)
	}
	for what, text := range shown {
		for _, token := range tokens {
			if strings.Contains(text, strings.Split(token, ".")[1]) {
				s.Errorf("a token is in %s", what)
			}
		}
	}
}
