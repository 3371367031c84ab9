// SPDX-License-Identifier: Apache-2.0

package situation

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"karpenter/world"
)

// lookAgain is how long it takes at most to see that the world is synced.
const lookAgain = 100 * time.Millisecond

// Pauses has the world know of the pauses of PodGroups that the last leader published. It is
// a manager.Runnable. All exported fields are required.
type Pauses struct {
	Live      client.Reader
	Namespace string
	Restore   func(map[string]world.Pause)
	Synced    func() bool // the world knows everything that existed at the start

	read atomic.Bool
}

// Read reports whether the pauses are restored, or cannot be.
func (p *Pauses) Read() bool { return p.read.Load() }

// Start restores the pauses. Those that cannot be read are forgotten: nodes are launched for
// their PodGroups once more.
func (p *Pauses) Start(ctx context.Context) error {
	err := wait.PollUntilContextCancel(ctx, lookAgain, true, func(context.Context) (bool, error) { return p.Synced(), nil })
	if err != nil {
		return nil // the process ends
	}
	if err := p.restore(ctx); err != nil {
		log.FromContext(ctx).Error(err, "cannot read the pauses of pod groups; launching nodes for all of them")
	}
	p.read.Store(true)
	return nil
}

func (p *Pauses) restore(ctx context.Context) error {
	m := &corev1.ConfigMap{}
	err := p.Live.Get(ctx, types.NamespacedName{Namespace: p.Namespace, Name: Name}, m)
	if apierrors.IsNotFound(err) || err == nil && m.Data[pausesKey] == "" {
		return nil
	}
	if err != nil {
		return err
	}
	var pauses map[string]world.Pause
	if err := json.Unmarshal([]byte(m.Data[pausesKey]), &pauses); err != nil {
		return fmt.Errorf("%s of ConfigMap %s/%s: %w", pausesKey, p.Namespace, Name, err)
	}
	p.Restore(pauses)
	return nil
}
