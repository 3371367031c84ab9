// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/client-go/util/retry"

	"karpenter/cloud/azure/azurefake"
)

// uninitialized is the taint that Azure's cloud node manager removes when it has told the
// Node who it is.
const uninitialized = "node.cloudprovider.kubernetes.io/uninitialized"

// joining is a virtual machine that has asked the API server for a certificate.
type joining struct {
	request string // name of the CertificateSigningRequest
	key     []byte // PEM
}

// data is what the script for a virtual machine's first boot says.
type data map[string]string

// read reads the script.
func read(script string) data {
	out := data{}
	for _, m := range regexp.MustCompile(`(?m)^([A-Z_]+)='(.*)'$`).FindAllStringSubmatch(script, -1) {
		out[m[1]] = m[2]
	}
	return out
}

// flag returns the value of a flag of the kubelet.
func (d data) flag(name string) string {
	for flag := range strings.FieldsSeq(d["KUBELET_FLAGS"]) {
		if value, ok := strings.CutPrefix(flag, name+"="); ok {
			return value
		}
	}
	return ""
}

// Describe adds to a virtual machine that is made without AKS what its kubelet is told in its
// custom data.
func Describe(vm *azurefake.VM) error {
	d := read(vm.CustomData)
	for label := range strings.SplitSeq(d["KUBELET_NODE_LABELS"], ",") {
		key, value, _ := strings.Cut(label, "=")
		vm.Labels[key] = value
	}
	vm.Taints = strings.Split(d.flag("--register-with-taints"), ",")
	var err error
	vm.MaxPods, err = strconv.ParseInt(d.flag("--max-pods"), 10, 64)
	return err
}

// api reaches the API server as the script says, but for the address: AKS serves at a name
// and port that nothing here has.
func (l *loop) api(d data) (*rest.Config, error) {
	authority, err := base64.StdEncoding.DecodeString(d["KUBE_CA_CRT"])
	if err != nil {
		return nil, fmt.Errorf("KUBE_CA_CRT: %w", err)
	}
	return &rest.Config{Host: l.Server, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}, nil
}

// join does a step of the TLS bootstrap of a kubelet: with the token of its script it asks
// for a certificate; when it has that, it registers its Node by it. It is done when there
// is a Node, or never will be.
func (l *loop) join(ctx context.Context, vm *azurefake.VM) (done bool, err error) {
	d := read(vm.CustomData)
	api, err := l.api(d)
	if err == nil {
		err = Describe(vm)
	}
	if err != nil {
		return true, err
	}
	vm.Taints = append(vm.Taints, uninitialized+"=true:NoSchedule") // until it is introduced
	bearer := rest.CopyConfig(api)
	bearer.BearerToken = d["TLS_BOOTSTRAP_TOKEN"]
	asks, err := kubernetes.NewForConfig(bearer)
	if err != nil {
		return true, err
	}
	requests := asks.CertificatesV1().CertificateSigningRequests()
	known, asked := l.joining[vm.ID]
	if !asked {
		request, key, err := request(vm.Name)
		if err != nil {
			return true, err
		}
		made, err := requests.Create(ctx, request, metav1.CreateOptions{})
		if apierrors.IsUnauthorized(err) {
			return true, errors.New("its bootstrap token is not valid")
		}
		if err != nil {
			return false, err
		}
		l.joining[vm.ID] = joining{made.Name, key}
		return false, nil
	}
	answer, err := requests.Get(ctx, known.request, metav1.GetOptions{})
	if err != nil || len(answer.Status.Certificate) == 0 {
		return false, err // it is not signed yet
	}
	delete(l.joining, vm.ID)
	api.CertData, api.KeyData = answer.Status.Certificate, known.key
	kubelet, err := kubernetes.NewForConfig(api)
	if err != nil {
		return true, err
	}
	n, err := Node(vm, l.Region, l.Overhead)
	if err != nil {
		return true, err
	}
	id := n.Spec.ProviderID
	n.Spec.ProviderID = ""
	if _, err := kubelet.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return false, fmt.Errorf("register node %s: %w", n.Name, err)
	}
	return true, l.introduce(ctx, n.Name, id)
}

// request is what a kubelet sends for its certificate, and the key to it.
func request(node string) (*certificatesv1.CertificateSigningRequest, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
	}, key)
	if err != nil {
		return nil, nil, err
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "node-csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, text, nil
}

// introduce does what Azure's cloud node manager does for a Node: it says which virtual
// machine it is.
func (l *loop) introduce(ctx context.Context, name, id string) error {
	nodes := l.Kube.CoreV1().Nodes()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		n, err := nodes.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		n.Spec.ProviderID = id
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == uninitialized })
		_, err = nodes.Update(ctx, n, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("introduce node %s: %w", name, err)
	}
	return nil
}
