// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// TestSecureMetrics installs the chart with metrics over TLS, and scrapes them as
// no one, as someone who may not, and as someone whom the chart's ClusterRole
// lets. The service account may ask who does, and is denied nothing.
func TestSecureMetrics(t *testing.T) {
	i := begin(t)
	port := freePort(t)
	i.install("--set", "settings.cloudProvider=kwok", "--set", "controller.metrics.secure=true",
		"--set", fmt.Sprint("controller.metrics.port=", port), "--set", fmt.Sprint("controller.healthProbe.port=", freePort(t)))
	stranger, prometheus := i.token("stranger"), i.token("prometheus")
	i.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "prometheus"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "karpenter-metrics"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "prometheus"}},
	})
	t.Cleanup(func() { i.remove("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "prometheus") })
	pod := i.pod()
	program := i.start(pod)
	i.leads("")
	url := fmt.Sprintf("https://127.0.0.1:%d/metrics", port)
	i.answers(url, prometheus, 200, "karpenter_build_info{")
	i.answers(url, prometheus, 200, `client_go_request_duration_seconds_count{group="coordination.k8s.io",kind="leases",subresource="",verb="POST",version="v1"} 1`)
	i.answers(url, "", 401, "the token is not valid in this cluster")
	i.answers(url, "made up", 401, "the token is not valid in this cluster")
	i.answers(url, stranger, 403, "system:serviceaccount:kube-system:stranger may not get /metrics: a ClusterRole with that path in nonResourceURLs allows it")
	program.Stop()
	asked, refused := i.requests(pod.Spec.ServiceAccountName)
	for _, r := range refused {
		t.Errorf("refused: %s", r)
	}
	for _, want := range []request{
		{verb: "create", group: "authentication.k8s.io", resource: "tokenreviews"},
		{verb: "create", group: "authorization.k8s.io", resource: "subjectaccessreviews"},
	} {
		if !slices.Contains(asked, want) {
			t.Errorf("%v was not asked for; the permission has no use", want)
		}
	}
	i.uninstall()
}

// token makes a service account and returns a token of it.
func (i *installation) token(name string) string {
	i.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	i.create(account)
	i.Cleanup(func() {
		if err := i.Client.Delete(background(), account); err != nil {
			i.Errorf("delete service account %s: %v", name, err)
		}
	})
	request := &authenticationv1.TokenRequest{}
	if err := i.Client.SubResource("token").Create(i.Context(), account, request); err != nil {
		i.Fatal(err)
	}
	return request.Status.Token
}

// answers waits until what is served at the URL is what is wanted.
func (i *installation) answers(url, token string, code int, says string) {
	i.Helper()
	asking := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer asking.CloseIdleConnections()
	got := ""
	err := wait.PollUntilContextTimeout(i.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, err
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := asking.Do(r)
		if err != nil {
			got = err.Error() // it does not listen yet
			return false, nil
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		got = fmt.Sprintf("%s %.300s", answer.Status, text)
		return answer.StatusCode == code && strings.Contains(string(text), says), err
	})
	if err != nil {
		i.Errorf("want %d %s; the last answer is %s (%v)", code, says, got, err)
	}
}
