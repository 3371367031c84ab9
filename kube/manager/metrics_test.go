// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// reviewer is an API server that knows ann and bob, and lets ann get /metrics.
// While broken, it knows nothing.
func reviewer(t *testing.T, broken *atomic.Bool) *rest.Config {
	t.Helper()
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, review any) {
		if broken.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}
	mux.HandleFunc("POST /apis/authentication.k8s.io/v1/tokenreviews", func(w http.ResponseWriter, r *http.Request) {
		review := read(t, r, &authenticationv1.TokenReview{})
		user := review.Spec.Token
		review.TypeMeta = metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"}
		review.Status.Authenticated, review.Status.User.Username = user == "ann" || user == "bob", user
		answer(w, review)
	})
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", func(w http.ResponseWriter, r *http.Request) {
		review := read(t, r, &authorizationv1.SubjectAccessReview{})
		review.TypeMeta = metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}
		review.Status.Allowed = review.Spec.User == "ann" && *review.Spec.NonResourceAttributes == authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}
		answer(w, review)
	})
	api := httptest.NewServer(mux)
	t.Cleanup(api.Close)
	return &rest.Config{Host: api.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"}}
}

func read[T any](t *testing.T, r *http.Request, into *T) *T {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		t.Error(err)
	}
	return into
}

// serving starts a server of metrics and returns where it is.
func serving(t *testing.T, m Metrics, cluster *rest.Config) string {
	t.Helper()
	o, err := m.options(kubescheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	o.BindAddress = "127.0.0.1:0"
	s, err := server.NewServer(o, cluster, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Start(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if bound := s.(interface{ GetBindAddr() string }).GetBindAddr(); bound != "" {
				address <- bound
				return
			}
		}
	}()
	select {
	case bound := <-address:
		return bound
	case err := <-ended:
		t.Fatal(err)
		return ""
	}
}

// trusting returns a client that believes the certificates, or anyone.
func trusting(pem []byte) *http.Client {
	c := &tls.Config{ServerName: "metrics.example.com", InsecureSkipVerify: pem == nil}
	if pem != nil {
		c.RootCAs = x509.NewCertPool()
		c.RootCAs.AppendCertsFromPEM(pem)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
}

func scrape(t *testing.T, c *http.Client, url, token string) (int, string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := c.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text), nil
}

// TestSecureMetrics shows who gets metrics and profiles, over TLS that no one
// has given a certificate for.
func TestSecureMetrics(t *testing.T) {
	var broken atomic.Bool
	bound := serving(t, Metrics{Port: 1, Secure: true, Profiling: true}, reviewer(t, &broken))
	for _, tc := range []struct {
		name, token, path string
		broken            bool
		code              int
		says              string
	}{
		{"no token", "", "/metrics", false, 401, "the token is not valid"},
		{"nobody's token", "eve", "/metrics", false, 401, "the token is not valid"},
		{"not allowed", "bob", "/metrics", false, 403, "bob may not get /metrics: a ClusterRole with that path in nonResourceURLs allows it"},
		{"allowed", "ann", "/metrics", false, 200, "# TYPE "},
		{"allowed something else", "ann", "/debug/pprof/goroutine", false, 403, "ann may not get /debug/pprof/goroutine"},
		{"no API server", "ann", "/metrics", true, 500, "does not say who may ask"},
	} {
		broken.Store(tc.broken)
		code, text, err := scrape(t, trusting(nil), "https://"+bound+tc.path, tc.token)
		if err != nil || code != tc.code || !strings.Contains(text, tc.says) {
			t.Errorf("%s: %d %.200s %v, want %d %s", tc.name, code, text, err, tc.code, tc.says)
		}
	}
	if code, text, err := scrape(t, http.DefaultClient, "http://"+bound+"/metrics", "ann"); err != nil || code != 400 {
		t.Errorf("without TLS: %d %s %v", code, text, err)
	}
}

// TestOpenMetrics checks the metrics with default settings.
func TestOpenMetrics(t *testing.T) {
	bound := serving(t, Metrics{Port: 1}, &rest.Config{})
	if code, text, err := scrape(t, http.DefaultClient, "http://"+bound+"/metrics", ""); err != nil || code != 200 || !strings.Contains(text, "# TYPE ") {
		t.Errorf("%d %.200s %v", code, text, err)
	}
	if o, err := (Metrics{}).options(nil); err != nil || o.BindAddress != "0" {
		t.Errorf("no port: %+v %v", o, err)
	}
}

// issue writes a new pair of files and returns the certificate.
func issue(t *testing.T, dir string) []byte {
	t.Helper()
	pem, key, err := cert.GenerateSelfSignedCertKey("metrics.example.com", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{keyFile: key, certFile: pem} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return pem
}

// TestCertificates: those of the directory are served, and new ones when they
// have been written.
func TestCertificates(t *testing.T) {
	dir := t.TempDir()
	first := issue(t, dir)
	var broken atomic.Bool
	url := "https://" + serving(t, Metrics{Port: 1, Secure: true, CertDir: dir}, reviewer(t, &broken)) + "/metrics"
	if code, _, err := scrape(t, trusting(first), url, "ann"); code != 200 {
		t.Fatal(code, err)
	}
	second := issue(t, dir)
	deadline := time.Now().Add(time.Minute)
	for {
		code, _, err := scrape(t, trusting(second), url, "ann")
		if code == 200 {
			break
		}
		var unknown x509.UnknownAuthorityError
		if !errors.As(err, &unknown) || time.Now().After(deadline) {
			t.Fatalf("the new certificate is not served: %d %v", code, err)
		}
	}
	if _, _, err := scrape(t, trusting(first), url, "ann"); err == nil {
		t.Error("the old certificate is served")
	}
}

func TestNoCertificate(t *testing.T) {
	dir := t.TempDir()
	_, err := Metrics{Port: 1, Secure: true, CertDir: dir}.options(nil)
	want := "certificate of the metrics: want a directory with tls.crt and its tls.key: open " + filepath.Join(dir, certFile) + ": no such file or directory"
	if err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
	issue(t, dir)
	if err := os.WriteFile(filepath.Join(dir, keyFile), []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (Metrics{Port: 1, Secure: true, CertDir: dir}).options(nil); err == nil || !strings.Contains(err.Error(), "want a directory with tls.crt and its tls.key") {
		t.Errorf("error is %v", err)
	}
}
