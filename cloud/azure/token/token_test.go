// SPDX-License-Identifier: Apache-2.0

package token_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"karpenter/cloud/azure/token"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cluster is an API server with a keeper.
type cluster struct {
	*token.Keeper
	t      *testing.T
	api    client.Client
	clock  *clocktesting.FakePassiveClock
	deny   error // what creations of Secrets answer; nil = they are allowed
	warned []string
}

func newCluster(t *testing.T, fixed string) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, corev1.AddToScheme(scheme))
	c := &cluster{t: t, clock: clocktesting.NewFakePassiveClock(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))}
	c.api = fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, to client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if c.deny != nil {
				return c.deny
			}
			return to.Create(ctx, o, options...)
		},
	}).Build()
	c.restart(fixed)
	return c
}

// restart forgets what the process knows.
func (c *cluster) restart(fixed string) {
	c.Keeper = token.New(token.Config{
		Live: c.api, Client: c.api, Clock: c.clock, Fixed: fixed, Warn: func(text string) { c.warned = append(c.warned, text) },
	})
}

func (c *cluster) step(d time.Duration) { c.clock.SetTime(c.clock.Now().Add(d)) }

// tokens are those in the API server, and how long they last.
func (c *cluster) tokens() map[string]time.Duration {
	c.t.Helper()
	list := &corev1.SecretList{}
	must(c.t, c.api.List(c.t.Context(), list, client.InNamespace("kube-system")))
	out := map[string]time.Duration{}
	for i := range list.Items {
		s := &list.Items[i]
		expires, err := time.Parse(time.RFC3339, string(s.Data["expiration"]))
		must(c.t, err)
		id := string(s.Data["token-id"])
		if s.Name != "bootstrap-token-"+id || s.Type != "bootstrap.kubernetes.io/token" || string(s.Data["usage-bootstrap-authentication"]) != "true" ||
			s.Data["usage-bootstrap-signing"] != nil || string(s.Data["auth-extra-groups"]) != token.Group || s.Labels["karpenter.azure.com/bootstrap-token"] != "true" {
			c.t.Errorf("Secret %s: type %s, labels %v", s.Name, s.Type, s.Labels)
		}
		out[id+"."+string(s.Data["token-secret"])] = expires.Sub(c.clock.Now())
	}
	return out
}

func (c *cluster) token() string {
	c.t.Helper()
	text, err := c.Token(c.t.Context())
	must(c.t, err)
	return text
}

// TestRotation covers spec 71/83: over three days, whoever asks gets a token that
// lasts an hour at least, there are three at most, and what has expired is gone.
func TestRotation(t *testing.T) {
	c := newCluster(t, "")
	given := map[string]bool{}
	for range 3 * 24 * 4 {
		text := c.token()
		must(t, c.Renew(t.Context()))
		given[text] = true
		all := c.tokens()
		if all[text] < time.Hour {
			t.Fatalf("a token was given that lasts %v; there are %v", all[text], all)
		}
		if len(all) > 3 {
			t.Fatalf("there are %d tokens", len(all))
		}
		for _, left := range all {
			if left <= 0 {
				t.Fatalf("a token has expired and is there: %v", all)
			}
		}
		c.step(15 * time.Minute)
	}
	if len(given) < 6 || len(given) > 8 {
		t.Errorf("%d tokens in three days", len(given))
	}
}

// TestTogether: who asks at the same time gets the same token.
func TestTogether(t *testing.T) {
	c := newCluster(t, "")
	var mu sync.Mutex
	var group sync.WaitGroup
	given := map[string]int{}
	for range 50 {
		group.Go(func() {
			text, err := c.Token(t.Context())
			mu.Lock()
			defer mu.Unlock()
			if given[text]++; err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if len(given) != 1 || len(c.tokens()) != 1 {
		t.Errorf("given %v", given)
	}
}

// TestNewLeader covers spec 71/84.
func TestNewLeader(t *testing.T) {
	c := newCluster(t, "")
	first := c.token()
	c.step(11 * time.Hour)
	c.restart("")
	if c.token() != first || len(c.tokens()) != 1 {
		t.Errorf("a new leader has made a token: %d", len(c.tokens()))
	}
	// Without half of its life it is replaced, and stays.
	c.step(2 * time.Hour)
	c.restart("")
	if c.token() == first || len(c.tokens()) != 2 {
		t.Errorf("%d tokens", len(c.tokens()))
	}
}

// TestForbidden covers the keeper's part of spec 71/85: what is held is given as long
// as it lasts, then nothing, and a token is made as soon as that is allowed.
func TestForbidden(t *testing.T) {
	c := newCluster(t, "")
	c.deny = errors.New("secrets is forbidden")
	if text, err := c.Token(t.Context()); err == nil || text != "" {
		t.Errorf("a token without a Secret, error %v", err)
	}
	c.deny = nil
	first := c.token()
	c.deny = errors.New("secrets is forbidden")
	c.step(20 * time.Hour)
	if err := c.Renew(t.Context()); err == nil {
		t.Error("a renewal that fails is no error")
	}
	if c.token() != first {
		t.Error("a token that lasts is not given")
	}
	c.step(3*time.Hour + time.Minute)
	if _, err := c.Token(t.Context()); err == nil || !strings.Contains(err.Error(), "secrets is forbidden") || strings.Contains(err.Error(), first) {
		t.Errorf("without an hour left: %v", err)
	}
	c.deny = nil
	if c.token() == first {
		t.Error("the same token")
	}
}

// TestDamaged: a Secret of that name which is no token of this keeper is replaced.
func TestDamaged(t *testing.T) {
	c := newCluster(t, "")
	for _, id := range token.IDs() {
		must(t, c.api.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-" + id}, Data: map[string][]byte{"token-id": []byte(id)}}))
	}
	if text := c.token(); !token.Valid(text) {
		t.Errorf("token %q", text)
	}
}

// TestFixed covers spec 71/86: with a token of the user no Secret is written, and a
// warning comes a day before it expires.
func TestFixed(t *testing.T) {
	const fixed = "abcdef.0123456789abcdef"
	c := newCluster(t, fixed)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-abcdef"}, Data: map[string][]byte{
		"token-id": []byte("abcdef"), "token-secret": []byte("0123456789abcdef"), "expiration": []byte(c.clock.Now().Add(48 * time.Hour).Format(time.RFC3339)),
	}}
	before := maps.Clone(secret.Data)
	must(t, c.api.Create(t.Context(), secret))
	for range 24 {
		must(t, c.Renew(t.Context()))
		c.step(time.Hour)
	}
	if len(c.warned) != 0 {
		t.Errorf("warned too soon: %q", c.warned)
	}
	c.step(time.Minute)
	must(t, c.Renew(t.Context()))
	if len(c.warned) != 1 || !strings.Contains(c.warned[0], "2026-08-03T12:00:00Z") || strings.Contains(c.warned[0], "0123456789abcdef") {
		t.Errorf("warnings %q", c.warned)
	}
	if c.token() != fixed {
		t.Error("another token")
	}
	list := &corev1.SecretList{}
	must(t, c.api.List(t.Context(), list))
	if len(list.Items) != 1 || !maps.EqualFunc(list.Items[0].Data, before, func(a, b []byte) bool { return string(a) == string(b) }) {
		t.Errorf("%d Secrets", len(list.Items))
	}
	must(t, c.api.Delete(t.Context(), &list.Items[0]))
	must(t, c.Renew(t.Context()))
	if len(c.warned) != 1 {
		t.Errorf("warned again within the hour: %q", c.warned)
	}
	c.step(time.Hour)
	must(t, c.Renew(t.Context()))
	if len(c.warned) != 2 {
		t.Errorf("without its Secret, warnings %q", c.warned)
	}
}
