/* An echo server on linerate: on a TAP device of Linux, or, with --self-test, two stacks joined in memory.
 *
 *   echo tap0 192.168.70.4/24     serves TCP port 7 on the TAP device tap0 (made if it is not there; needs the right to)
 *   echo --self-test              sends data through the echo and compares; needs no rights; exit code 0 if all is well
 */
#define _DEFAULT_SOURCE

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "linerate.h"

#define MTU 1500
#define PORT 7
#define CLIENTS 64

/* ---- The echo: a listener and its clients. It knows nothing of devices. ---- */

struct client {
    int fd;          /* -1: free */
    size_t held;     /* bytes in `data` that are not sent back yet */
    char data[16384];
};

struct echo {
    lr_stack *stack;
    int listener;
    struct client clients[CLIENTS];
};

static struct sockaddr_in inet_address(const char *ip, int port)
{
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons((unsigned short)port);
    inet_pton(AF_INET, ip, &address.sin_addr);
    return address;
}

static int echo_open(struct echo *echo, lr_stack *stack)
{
    struct sockaddr_in any = inet_address("0.0.0.0", PORT);
    int code;

    memset(echo, 0, sizeof *echo);
    for (int i = 0; i < CLIENTS; i++)
        echo->clients[i].fd = -1;
    echo->stack = stack;
    echo->listener = lr_socket(stack, AF_INET, SOCK_STREAM, 0);
    if (echo->listener < 0)
        return echo->listener;
    code = lr_bind(stack, echo->listener, (struct sockaddr *)&any, sizeof any);
    return code < 0 ? code : lr_listen(stack, echo->listener, 16);
}

/* Sends back what is held and reads more. Returns 0 when the client is done, for whatever reason. */
static int client_work(lr_stack *stack, struct client *client)
{
    for (;;) {
        ssize_t got;

        if (client->held > 0) {
            ssize_t sent = lr_write(stack, client->fd, client->data, client->held);
            if (sent < 0)
                return sent == -EAGAIN;
            client->held -= (size_t)sent;
            memmove(client->data, client->data + sent, client->held);
            if (client->held > 0)
                return 1;
        }
        got = lr_read(stack, client->fd, client->data, sizeof client->data);
        if (got <= 0)
            return got == -EAGAIN;
        client->held = (size_t)got;
    }
}

/* Serves whoever is ready. To be called after each turn of the stack. */
static void echo_work(struct echo *echo)
{
    struct pollfd ready[CLIENTS + 1];

    ready[CLIENTS].fd = echo->listener;
    ready[CLIENTS].events = POLLIN;
    for (int i = 0; i < CLIENTS; i++) {
        ready[i].fd = echo->clients[i].fd;
        ready[i].events = echo->clients[i].held > 0 ? POLLOUT : POLLIN;
    }
    if (lr_poll(echo->stack, ready, CLIENTS + 1) <= 0)
        return;
    for (int i = 0; i < CLIENTS; i++) {
        struct client *client = &echo->clients[i];
        if (client->fd >= 0 && ready[i].revents && !client_work(echo->stack, client)) {
            lr_close(echo->stack, client->fd);
            client->fd = -1;
            client->held = 0;
        }
    }
    for (int i = 0; i < CLIENTS && ready[CLIENTS].revents; i++) {
        int fd;
        if (echo->clients[i].fd >= 0)
            continue;
        fd = lr_accept(echo->stack, echo->listener, NULL, NULL);
        if (fd < 0)
            break;
        echo->clients[i].fd = fd;
        echo->clients[i].held = 0;
    }
}

/* ---- A TAP device of Linux. ---- */

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int tap_transmit(void *user, const struct iovec *pieces, size_t count, const lr_tx_meta *meta)
{
    (void)meta;
    if (writev(*(int *)user, pieces, (int)count) >= 0 || errno == EIO)
        return 0; /* EIO: the interface is down; packets are lost, as on a cable that is not plugged in */
    return errno == EAGAIN || errno == ENOBUFS ? -EAGAIN : -errno;
}

static ssize_t tap_receive(void *user, void *buffer, size_t capacity, lr_rx_meta *meta)
{
    ssize_t got = read(*(int *)user, buffer, capacity);
    (void)meta;
    return got >= 0 ? got : -errno;
}

static int tap_open(const char *name)
{
    struct ifreq request;
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);

    if (fd < 0)
        return -1;
    memset(&request, 0, sizeof request);
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
    if (ioctl(fd, TUNSETIFF, &request) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int new_stack(lr_stack **stack, const char *addresses, lr_device *device, uint64_t now)
{
    lr_stack_config config;
    int code = lr_stack_config_init(&config);

    config.addresses = addresses;
    config.dad_transmits = 0; /* nobody else is on this cable */
    return code < 0 ? code : lr_stack_new(&config, device, now, stack);
}

static volatile sig_atomic_t stopped;

static void stop(int number)
{
    (void)number;
    stopped = 1;
}

static int serve(const char *name, const char *addresses)
{
    int tap = tap_open(name);
    lr_device device = {0};
    lr_stack *stack;
    struct echo *echo = malloc(sizeof *echo);
    int code;

    if (tap < 0 || echo == NULL) {
        fprintf(stderr, "echo: no TAP device %s: %s\n", name, strerror(errno));
        free(echo);
        return 1;
    }
    device.user = &tap;
    device.transmit = tap_transmit;
    device.receive = tap_receive;
    memcpy(device.mac, "\x02\x00\x00\x00\x00\x07", 6);
    device.mtu = MTU;
    code = new_stack(&stack, addresses, &device, clock_ns());
    if (code < 0 || (code = echo_open(echo, stack)) < 0) {
        fprintf(stderr, "echo: %s\n", strerror(-code));
        return 1;
    }
    printf("echo: TCP port %d of %s on %s\n", PORT, addresses, name);
    fflush(stdout);
    while (!stopped) {
        struct pollfd wake = {0};
        uint64_t now = clock_ns(), due;
        int turn = lr_stack_turn(stack, now), wait = 1000;

        if (turn < 0) {
            fprintf(stderr, "echo: device: %s\n", strerror(-turn));
            break;
        }
        echo_work(echo);
        due = lr_stack_next_timeout(stack);
        if (due <= now)
            wait = 0;
        else if ((due - now) / 1000000 < 1000)
            wait = (int)((due - now) / 1000000) + 1;
        wake.fd = tap;
        wake.events = (short)(POLLIN | (turn & LR_TURN_DEVICE_FULL ? POLLOUT : 0));
        poll(&wake, 1, wait);
    }
    lr_stack_free(stack);
    free(echo);
    close(tap);
    return 0;
}

/* ---- Two stacks in one process: each sends into a ring that the other receives from. ---- */

#define RING 32

struct ring {
    size_t head, count;
    size_t length[RING];
    unsigned char frame[RING][MTU + 22];
};

struct cable {
    struct ring *out, *in;
    unsigned drop_every, sent; /* loses each n-th frame, 0: none */
};

static int cable_transmit(void *user, const struct iovec *pieces, size_t count, const lr_tx_meta *meta)
{
    struct cable *cable = user;
    struct ring *ring = cable->out;
    size_t slot = (ring->head + ring->count) % RING, length = 0;

    (void)meta;
    if (ring->count == RING)
        return -EAGAIN;
    if (cable->drop_every && ++cable->sent % cable->drop_every == 0)
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (length + pieces[i].iov_len > sizeof ring->frame[slot])
            return -EMSGSIZE;
        memcpy(ring->frame[slot] + length, pieces[i].iov_base, pieces[i].iov_len);
        length += pieces[i].iov_len;
    }
    ring->length[slot] = length;
    ring->count++;
    return 0;
}

static ssize_t cable_receive(void *user, void *buffer, size_t capacity, lr_rx_meta *meta)
{
    struct ring *ring = ((struct cable *)user)->in;
    size_t length;

    (void)meta;
    if (ring->count == 0)
        return 0;
    length = ring->length[ring->head];
    if (length > capacity)
        return -EMSGSIZE;
    memcpy(buffer, ring->frame[ring->head], length);
    ring->head = (ring->head + 1) % RING;
    ring->count--;
    return (ssize_t)length;
}

#define TEST_BYTES 2000000u

static unsigned char test_byte(size_t i)
{
    return (unsigned char)(i ^ (i >> 8) ^ (i >> 16));
}

/* Writes and reads as much as goes. Returns 1 when everything came back, 0 for not yet, -1 for a difference. */
static int test_work(lr_stack *stack, int fd, size_t *sent, size_t *back)
{
    unsigned char data[4096];
    ssize_t got;

    while (*sent < TEST_BYTES) {
        size_t length = TEST_BYTES - *sent < sizeof data ? TEST_BYTES - *sent : sizeof data;
        ssize_t taken;
        for (size_t i = 0; i < length; i++)
            data[i] = test_byte(*sent + i);
        taken = lr_write(stack, fd, data, length);
        if (taken == -EAGAIN)
            break;
        if (taken < 0)
            return -1;
        *sent += (size_t)taken;
        if (*sent == TEST_BYTES && lr_shutdown(stack, fd, SHUT_WR) < 0)
            return -1;
    }
    while ((got = lr_read(stack, fd, data, sizeof data)) > 0)
        for (ssize_t i = 0; i < got; i++)
            if (data[i] != test_byte((*back)++))
                return -1;
    if (got == 0)
        return *back == TEST_BYTES ? 1 : -1;
    return got == -EAGAIN ? 0 : -1;
}

static int self_test(void)
{
    struct ring *rings = calloc(2, sizeof *rings);
    struct echo *echo = malloc(sizeof *echo);
    struct cable ends[2] = {{0}, {0}};
    struct sockaddr_in server = inet_address("192.168.70.1", PORT);
    lr_stack *stacks[2];
    uint64_t now = 1;
    size_t sent = 0, back = 0;
    int fd, done = 0;
    lr_tcp_info info;
    socklen_t length = sizeof info;

    if (rings == NULL || echo == NULL)
        return 1;
    for (int i = 0; i < 2; i++) {
        lr_device device = {0};
        ends[i].out = &rings[i];
        ends[i].in = &rings[1 - i];
        ends[i].drop_every = 101;
        device.user = &ends[i];
        device.transmit = cable_transmit;
        device.receive = cable_receive;
        memcpy(device.mac, "\x02\x00\x00\x00\x00\x01", 6);
        device.mac[5] = (uint8_t)(i + 1);
        device.mtu = MTU;
        if (new_stack(&stacks[i], i ? "192.168.70.2/24" : "192.168.70.1/24", &device, now) < 0)
            return 1;
    }
    fd = lr_socket(stacks[1], AF_INET, SOCK_STREAM, 0);
    if (echo_open(echo, stacks[0]) < 0 || fd < 0)
        return 1;
    if (lr_connect(stacks[1], fd, (struct sockaddr *)&server, sizeof server) != -EINPROGRESS)
        return 1;
    /* The clock is ours: 100 us a step, at most a minute. */
    for (; !done && now < 60000000000u; now += 100000) {
        struct pollfd open = {0};
        if (lr_stack_turn(stacks[0], now) < 0 || lr_stack_turn(stacks[1], now) < 0)
            return 1;
        echo_work(echo);
        open.fd = fd;
        open.events = POLLOUT | POLLIN;
        if (lr_poll(stacks[1], &open, 1) > 0)
            done = test_work(stacks[1], fd, &sent, &back);
    }
    if (lr_getsockopt(stacks[1], fd, IPPROTO_TCP, TCP_INFO, &info, &length) < 0 || length != sizeof info)
        return 1;
    printf("echo: %lu of %u bytes came back in %lu ms of virtual time, %lu segments sent again\n",
           (unsigned long)back, TEST_BYTES, (unsigned long)(now / 1000000),
           (unsigned long)info.tcpi_total_retrans);
    lr_stack_free(stacks[0]);
    lr_stack_free(stacks[1]);
    free(echo);
    free(rings);
    return done == 1 && info.tcpi_total_retrans > 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--self-test") == 0)
        return self_test();
    if (argc != 3) {
        fprintf(stderr, "usage: echo --self-test | echo TAP ADDRESS/PREFIX\n");
        return 2;
    }
    signal(SIGINT, stop);
    signal(SIGTERM, stop);
    return serve(argv[1], argv[2]);
}
