/* The stack's world under packetdrill: two queues of packets for a device, a clock that others move, and the one call that
 * may wait for what happens in it. Used by plugin.c only. */
#ifndef LINERATE_PACKETDRILL_WORLD_H
#define LINERATE_PACKETDRILL_WORLD_H

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "linerate.h"

#define MTU_MAX 65535
#define QUEUE 256
#define DESCRIPTORS 1024
#define EARLY_CALLS 64
#define TICK_NS 1000u
/* Nothing that a script waits for takes longer. */
#define PATIENCE_NS 3600000000000ull

struct packet {
    size_t length;
    uint64_t time_ns;
    unsigned char bytes[MTU_MAX];
};

struct queue {
    size_t head, count;
    struct packet packets[QUEUE];
};

struct plugin;

/* A call that may have to wait: what it does, again and again until it gives something else than -EAGAIN. */
struct call {
    ssize_t (*attempt)(struct plugin *, struct call *);
    int fd, flags;
    struct msghdr *message; /* read or sent */
    size_t done;            /* bytes of it that were sent */
    struct sockaddr *address;
    socklen_t *length;
    struct pollfd *entries;
    nfds_t count;
    uint64_t deadline_ns; /* when it gives up with 0; 0: never */
    int is_over;
    ssize_t result;
};

/* socket (with domain, type, protocol) or setsockopt (with fd, level, name) before the first address was named. */
struct early {
    int is_socket, a, b, c;
    unsigned char value[32];
    socklen_t length;
};

struct plugin {
    lr_stack *stack;
    uint64_t now_ns;
    int no_push;   /* PSH is taken out of what is sent */
    int is_placed; /* the address is known, or was given */
    size_t early_count;
    struct early early[EARLY_CALLS];
    int non_blocking[DESCRIPTORS];
    struct queue to_stack, from_stack;
    size_t received; /* packets that the stack took in this turn */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t first;      /* the thread that passes time */
    struct call *waiting; /* the call of the other thread */
    int is_returning;     /* it is over, and has not looked at the time yet */
};

static struct packet *queue_add(struct queue *queue)
{
    if (queue->count == QUEUE)
        return NULL;
    return &queue->packets[(queue->head + queue->count++) % QUEUE];
}

static struct packet *queue_take(struct queue *queue)
{
    struct packet *packet = &queue->packets[queue->head];
    if (queue->count == 0)
        return NULL;
    queue->head = (queue->head + 1) % QUEUE;
    queue->count--;
    return packet;
}

/* Takes PSH out of a TCP segment and its part out of the checksum (RFC 1624). */
static void clear_push(struct packet *packet)
{
    size_t header = packet->bytes[0] >> 4 == 4 ? (size_t)(packet->bytes[0] & 15) * 4 : 40;
    unsigned char *tcp = packet->bytes + header;
    uint32_t sum;

    if (packet->bytes[header == 40 && packet->bytes[0] >> 4 == 6 ? 6 : 9] != 6 || packet->length < header + 20
        || !(tcp[13] & 8))
        return;
    tcp[13] &= (unsigned char)~8;
    sum = (uint32_t)(tcp[16] << 8 | tcp[17]) + 8;
    sum = (sum & 0xffff) + (sum >> 16);
    tcp[16] = (unsigned char)(sum >> 8);
    tcp[17] = (unsigned char)sum;
}

static int device_transmit(void *user, const struct iovec *pieces, size_t count, const lr_tx_meta *meta)
{
    struct plugin *plugin = user;
    struct packet *packet = queue_add(&plugin->from_stack);

    (void)meta;
    if (packet == NULL)
        return -EAGAIN;
    packet->length = 0;
    packet->time_ns = plugin->now_ns;
    for (size_t i = 0; i < count && packet->length + pieces[i].iov_len <= MTU_MAX; i++) {
        memcpy(packet->bytes + packet->length, pieces[i].iov_base, pieces[i].iov_len);
        packet->length += pieces[i].iov_len;
    }
    if (plugin->no_push)
        clear_push(packet);
    return 0;
}

/* One packet in a turn: those of a batch would be coalesced, and a script counts them. */
static ssize_t device_receive(void *user, void *buffer, size_t capacity, lr_rx_meta *meta)
{
    struct plugin *plugin = user;
    struct packet *packet = plugin->received++ == 0 ? queue_take(&plugin->to_stack) : NULL;

    (void)meta;
    if (packet == NULL || packet->length > capacity)
        return 0;
    memcpy(buffer, packet->bytes, packet->length);
    return (ssize_t)packet->length;
}

/* Lets the stack do what it can do now. */
static void settle(struct plugin *plugin)
{
    for (int turns = 0; turns < 1024; turns++) {
        plugin->received = 0;
        if (lr_stack_turn(plugin->stack, plugin->now_ns) != LR_TURN_AGAIN && plugin->to_stack.count == 0
            && lr_stack_next_timeout(plugin->stack) > plugin->now_ns)
            return;
    }
}

/* Tries the call that waits once more. When it is over, its thread sees the time before that goes on. */
static void retry(struct plugin *plugin)
{
    struct call *call = plugin->waiting;
    ssize_t result;

    if (call == NULL)
        return;
    result = call->attempt(plugin, call);
    settle(plugin);
    if (result == -EAGAIN && call->deadline_ns != 0 && plugin->now_ns >= call->deadline_ns)
        result = 0;
    if (result == -EAGAIN)
        return;
    call->result = result;
    call->is_over = 1;
    plugin->waiting = NULL;
    plugin->is_returning = 1;
    pthread_cond_broadcast(&plugin->changed);
    while (plugin->is_returning)
        pthread_cond_wait(&plugin->changed, &plugin->lock);
}

/* When something is due, `end` at the latest. */
static uint64_t next_due(const struct plugin *plugin, uint64_t end)
{
    uint64_t due = lr_stack_next_timeout(plugin->stack);

    if (plugin->waiting != NULL && plugin->waiting->deadline_ns != 0 && plugin->waiting->deadline_ns < due)
        due = plugin->waiting->deadline_ns;
    if (due <= plugin->now_ns)
        due = plugin->now_ns + TICK_NS;
    return due < end ? due : end;
}

/* Goes on to the time `at`, stopping at everything that is due. */
static void pass(struct plugin *plugin, uint64_t at)
{
    while (plugin->now_ns < at) {
        plugin->now_ns = next_due(plugin, at);
        settle(plugin);
        retry(plugin);
    }
}

#endif
