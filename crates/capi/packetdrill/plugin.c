/* linerate under packetdrill: packetdrill's interface on top of linerate.h, in virtual time.
 *
 *   packetdrill --so_filename=liblinerate_packetdrill.so tests/packetdrill/SCRIPT.pkt
 *
 * The flags (--so_flags) are the stack's addresses with their prefix lengths; by default packetdrill's own. Time stands
 * still but for usleep, netdev_receive and poll, and a microsecond for each call. No call blocks: what would block gives
 * EAGAIN (connect: EINPROGRESS). epoll, pipe and splice give ENOSYS. */
#define _GNU_SOURCE

#include "interface.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "linerate.h"

#define ADDRESSES "192.168.0.1/16,fd3d:fa7b:d17d::1/48"
#define GATEWAYS "192.168.0.2,fd3d:fa7b:d17d:8888::2"
#define MTU 1500
#define QUEUE 256
#define DESCRIPTORS 1024
#define TICK_NS 1000u
/* Nothing that a script waits for takes longer. */
#define PATIENCE_NS 3600000000000ull

struct packet {
    size_t length;
    uint64_t time_ns;
    unsigned char bytes[MTU];
};

struct queue {
    size_t head, count;
    struct packet packets[QUEUE];
};

struct plugin {
    lr_stack *stack;
    uint64_t now_ns;
    int status[DESCRIPTORS]; /* O_NONBLOCK as scripts set it; it changes nothing */
    struct queue to_stack, from_stack;
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

static int device_transmit(void *user, const struct iovec *pieces, size_t count, const lr_tx_meta *meta)
{
    struct plugin *plugin = user;
    struct packet *packet = queue_add(&plugin->from_stack);

    (void)meta;
    if (packet == NULL)
        return -EAGAIN;
    packet->length = 0;
    packet->time_ns = plugin->now_ns;
    for (size_t i = 0; i < count && packet->length + pieces[i].iov_len <= MTU; i++) {
        memcpy(packet->bytes + packet->length, pieces[i].iov_base, pieces[i].iov_len);
        packet->length += pieces[i].iov_len;
    }
    return 0;
}

static ssize_t device_receive(void *user, void *buffer, size_t capacity, lr_rx_meta *meta)
{
    struct packet *packet = queue_take(&((struct plugin *)user)->to_stack);

    (void)meta;
    if (packet == NULL || packet->length > capacity)
        return 0;
    memcpy(buffer, packet->bytes, packet->length);
    return (ssize_t)packet->length;
}

/* Lets the stack do what it can do now. */
static void settle(struct plugin *plugin)
{
    for (int turns = 0; turns < 64; turns++)
        if (lr_stack_turn(plugin->stack, plugin->now_ns) != LR_TURN_AGAIN
            && lr_stack_next_timeout(plugin->stack) > plugin->now_ns)
            return;
}

/* Goes on to the time `at`, stopping at every deadline of the stack. */
static void pass(struct plugin *plugin, uint64_t at)
{
    for (;;) {
        uint64_t due = lr_stack_next_timeout(plugin->stack);
        if (due >= at)
            break;
        plugin->now_ns = due > plugin->now_ns ? due : plugin->now_ns + TICK_NS;
        settle(plugin);
    }
    if (plugin->now_ns < at)
        plugin->now_ns = at;
    settle(plugin);
}

/* The result of a call in the system's manner, after the stack did what follows from it. */
static ssize_t finish(struct plugin *plugin, ssize_t result)
{
    settle(plugin);
    plugin->now_ns += TICK_NS;
    if (result >= 0)
        return result;
    errno = (int)-result;
    return -1;
}

#define CALL(name, ...) \
    struct plugin *plugin = userdata; \
    return (__typeof__(lr_##name(plugin->stack, __VA_ARGS__)))finish(plugin, lr_##name(plugin->stack, __VA_ARGS__))

static int pd_socket(void *userdata, int domain, int type, int protocol) { CALL(socket, domain, type, protocol); }
static int pd_bind(void *userdata, int fd, const struct sockaddr *a, socklen_t n) { CALL(bind, fd, a, n); }
static int pd_listen(void *userdata, int fd, int backlog) { CALL(listen, fd, backlog); }
static int pd_accept(void *userdata, int fd, struct sockaddr *a, socklen_t *n) { CALL(accept, fd, a, n); }
static int pd_connect(void *userdata, int fd, const struct sockaddr *a, socklen_t n) { CALL(connect, fd, a, n); }
static ssize_t pd_read(void *userdata, int fd, void *to, size_t n) { CALL(read, fd, to, n); }
static ssize_t pd_readv(void *userdata, int fd, const struct iovec *v, int n) { CALL(readv, fd, v, n); }
static ssize_t pd_recv(void *userdata, int fd, void *to, size_t n, int flags) { CALL(recv, fd, to, n, flags); }
static ssize_t pd_recvfrom(void *userdata, int fd, void *to, size_t n, int flags, struct sockaddr *a, socklen_t *l)
{
    CALL(recvfrom, fd, to, n, flags, a, l);
}
static ssize_t pd_recvmsg(void *userdata, int fd, struct msghdr *m, int flags) { CALL(recvmsg, fd, m, flags); }
static ssize_t pd_write(void *userdata, int fd, const void *from, size_t n) { CALL(write, fd, from, n); }
static ssize_t pd_writev(void *userdata, int fd, const struct iovec *v, int n) { CALL(writev, fd, v, n); }
static ssize_t pd_send(void *userdata, int fd, const void *from, size_t n, int flags) { CALL(send, fd, from, n, flags); }
static ssize_t pd_sendto(void *userdata, int fd, const void *from, size_t n, int flags, const struct sockaddr *a,
                         socklen_t l)
{
    CALL(sendto, fd, from, n, flags, a, l);
}
static ssize_t pd_sendmsg(void *userdata, int fd, const struct msghdr *m, int flags) { CALL(sendmsg, fd, m, flags); }
static int pd_shutdown(void *userdata, int fd, int how) { CALL(shutdown, fd, how); }
static int pd_getsockopt(void *userdata, int fd, int level, int name, void *value, socklen_t *n)
{
    CALL(getsockopt, fd, level, name, value, n);
}
static int pd_setsockopt(void *userdata, int fd, int level, int name, const void *value, socklen_t n)
{
    CALL(setsockopt, fd, level, name, value, n);
}

static int pd_close(void *userdata, int fd)
{
    struct plugin *plugin = userdata;
    if (fd >= 0 && fd < DESCRIPTORS)
        plugin->status[fd] = 0;
    return (int)finish(plugin, lr_close(plugin->stack, fd));
}

static int pd_fcntl(void *userdata, int fd, int command, ...)
{
    struct plugin *plugin = userdata;
    int result = lr_fcntl(plugin->stack, fd, F_GETFL, 0);
    va_list arguments;

    if (result >= 0 && fd < DESCRIPTORS && command == F_SETFL) {
        va_start(arguments, command);
        plugin->status[fd] = va_arg(arguments, int) & O_NONBLOCK;
        va_end(arguments);
        result = 0;
    } else if (result >= 0 && fd < DESCRIPTORS && command == F_GETFL) {
        result = O_RDWR | plugin->status[fd];
    } else if (result >= 0) {
        result = -EINVAL;
    }
    return (int)finish(plugin, result);
}

static int pd_ioctl(void *userdata, int fd, unsigned long request, ...)
{
    struct plugin *plugin = userdata;
    va_list arguments;
    void *argument;

    va_start(arguments, request);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    return (int)finish(plugin, lr_ioctl(plugin->stack, fd, request, argument));
}

static int pd_poll(void *userdata, struct pollfd *entries, nfds_t count, int timeout_ms)
{
    struct plugin *plugin = userdata;
    uint64_t end = plugin->now_ns + (timeout_ms < 0 ? PATIENCE_NS : (uint64_t)timeout_ms * 1000000u);
    int ready = lr_poll(plugin->stack, entries, count);

    while (ready == 0 && plugin->now_ns < end) {
        uint64_t due = lr_stack_next_timeout(plugin->stack);
        if (due <= plugin->now_ns)
            due = plugin->now_ns + TICK_NS;
        pass(plugin, due < end ? due : end);
        ready = lr_poll(plugin->stack, entries, count);
    }
    return (int)finish(plugin, ready);
}

static int pd_netdev_send(void *userdata, const void *bytes, size_t length)
{
    struct plugin *plugin = userdata;
    struct packet *packet = length <= MTU ? queue_add(&plugin->to_stack) : NULL;

    if (packet == NULL)
        return (int)finish(plugin, -EMSGSIZE);
    memcpy(packet->bytes, bytes, length);
    packet->length = length;
    return (int)finish(plugin, 0);
}

/* A stack that will never send anything is told by a length of 0. */
static int pd_netdev_receive(void *userdata, void *bytes, size_t *length, long long *time_us)
{
    struct plugin *plugin = userdata;
    uint64_t end = plugin->now_ns + PATIENCE_NS;
    struct packet *packet;

    settle(plugin);
    while (plugin->from_stack.count == 0 && plugin->now_ns < end) {
        uint64_t due = lr_stack_next_timeout(plugin->stack);
        if (due <= plugin->now_ns)
            due = plugin->now_ns + TICK_NS;
        pass(plugin, due < end ? due : end);
    }
    packet = queue_take(&plugin->from_stack);
    if (packet != NULL && packet->length <= *length) {
        memcpy(bytes, packet->bytes, packet->length);
        *length = packet->length;
        *time_us = (long long)(packet->time_ns / 1000);
    } else {
        *length = 0;
        *time_us = (long long)(plugin->now_ns / 1000);
    }
    return (int)finish(plugin, 0);
}

static int pd_usleep(void *userdata, useconds_t time_us)
{
    struct plugin *plugin = userdata;
    pass(plugin, plugin->now_ns + (uint64_t)time_us * 1000u);
    return (int)finish(plugin, 0);
}

static int pd_gettimeofday(void *userdata, struct timeval *time, struct timezone *zone)
{
    struct plugin *plugin = userdata;
    (void)zone;
    plugin->now_ns += TICK_NS;
    time->tv_sec = (time_t)(plugin->now_ns / 1000000000u);
    time->tv_usec = (suseconds_t)(plugin->now_ns / 1000u % 1000000u);
    return 0;
}

static int missing(void)
{
    errno = ENOSYS;
    return -1;
}

static int pd_epoll_create(void *u, int n) { (void)u, (void)n; return missing(); }
static int pd_epoll_ctl(void *u, int e, int o, int f, struct epoll_event *v)
{
    (void)u, (void)e, (void)o, (void)f, (void)v;
    return missing();
}
static int pd_epoll_wait(void *u, int e, struct epoll_event *v, int n, int t)
{
    (void)u, (void)e, (void)v, (void)n, (void)t;
    return missing();
}
static int pd_pipe(void *u, int fds[2]) { (void)u, (void)fds; return missing(); }
static int pd_splice(void *u, int i, off_t *io, int o, off_t *oo, size_t n, unsigned f)
{
    (void)u, (void)i, (void)io, (void)o, (void)oo, (void)n, (void)f;
    return missing();
}

static void pd_free(void *userdata)
{
    struct plugin *plugin = userdata;
    if (plugin != NULL)
        lr_stack_free(plugin->stack);
    free(plugin);
}

/* Null without memory, or with flags that are no addresses. */
static struct plugin *plugin_new(const char *flags)
{
    struct plugin *plugin = calloc(1, sizeof *plugin);
    lr_stack_config config;
    lr_device device;

    if (plugin == NULL || lr_stack_config_init(&config) < 0) {
        free(plugin);
        return NULL;
    }
    config.addresses = flags != NULL && flags[0] != '\0' ? flags : ADDRESSES;
    config.gateways = GATEWAYS;
    memset(config.seed, 7, sizeof config.seed); /* the same at every run */
    memset(&device, 0, sizeof device);
    device.user = plugin;
    device.transmit = device_transmit;
    device.receive = device_receive;
    device.mtu = MTU;
    device.capabilities = LR_DEVICE_IP;
    plugin->now_ns = 1000000000u;
    if (lr_stack_new(&config, &device, plugin->now_ns, &plugin->stack) < 0) {
        free(plugin);
        return NULL;
    }
    settle(plugin);
    return plugin;
}

void packetdrill_interface_init(const char *flags, struct packetdrill_interface *table)
{
    static const struct packetdrill_interface ours = {
        NULL, pd_free, pd_socket, pd_bind, pd_listen, pd_accept, pd_connect, pd_read, pd_readv, pd_recv,
        pd_recvfrom, pd_recvmsg, pd_write, pd_writev, pd_send, pd_sendto, pd_sendmsg, pd_fcntl, pd_ioctl,
        pd_close, pd_shutdown, pd_getsockopt, pd_setsockopt, pd_poll, pd_netdev_send, pd_netdev_receive,
        pd_usleep, pd_gettimeofday, pd_epoll_create, pd_epoll_ctl, pd_epoll_wait, pd_pipe, pd_splice,
    };
    *table = ours;
    table->userdata = plugin_new(flags);
    if (table->userdata == NULL)
        abort(); /* the interface has no way to say it */
}
